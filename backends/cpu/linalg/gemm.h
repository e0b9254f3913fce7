// Matrix products on one thread: blocked for the caches, packed, and multiplied a register tile at a time.
#pragma once
#include <cstdint>
#include <type_traits>

#include "backends/cpu/vec.h"
#include "core/scalar_type.h"

namespace rush::cpu {

// Note [How a product is computed]
// C (m, n) = alpha A (m, k) B (k, n) + beta C, after Goto and van de Geijn, "Anatomy of high-performance matrix
// multiplication" (ACM TOMS 34, 2008). We call the rows of A and the columns of B lanes, and the summed dimension
// depth.
//
// A block of B, a few hundred deep, is copied ("packed") into panels of as many columns as two vector registers hold;
// a block of A into panels of as many rows as the other registers can accumulate. Within a panel, lanes lie side by
// side and depth follows depth, so the innermost loop (multiply_tile) reads both in a straight line: per step of depth
// it loads two vectors of B, and multiplies them by each of the rows' numbers. The panel of B stays in the L1 cache,
// the block of A in L2.
//
// Packing is where everything that is not plain arithmetic happens: any strides are straightened out, 16-bit floats and
// small integers become the type that is computed in, and a convolution reads its window of the image (conv.cpp). So
// one innermost loop serves all.

// The type that products of T are accumulated in. Integers wrap around, hence unsigned.
template <class T>
struct GemmMath {
  using type = opmath_t<T>;
};
template <class T>
requires std::is_integral_v<T>
struct GemmMath<T> {
  using type = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;
};
template <class T>
using gemm_math_t = typename GemmMath<T>::type;

// The parts of a complex number are packed and accumulated apart: two planes of real numbers.
template <class Math>
struct GemmReal {
  using type = Math;
};
template <class R>
struct GemmReal<complex<R>> {
  using type = R;
};
template <class Math>
using gemm_real_t = typename GemmReal<Math>::type;

// Rows of a tile: with two vectors of columns each, their sums fill the registers.
#if defined(__AVX512F__)
inline constexpr int64_t kTileRows = 14, kComplexTileRows = 12;
#else
inline constexpr int64_t kTileRows = 6, kComplexTileRows = 5;
#endif

template <class Math>
struct TileShape {
  using Real = gemm_real_t<Math>;
  static constexpr int planes = is_complex_v<Math> ? 2 : 1;
  static constexpr int64_t width = kVectorBytes / sizeof(Real);  // lanes of a vector
  static constexpr int64_t rows = planes == 1 ? kTileRows : kComplexTileRows;
  static constexpr int64_t columns = planes == 1 ? 2 * width : width;
  // Depth of a block: a panel of B (32 KiB) and one of A fit a 48 KiB L1 cache.
  static constexpr int64_t depth = 256;
  // Rows of a block of A and columns of one of B: half a megabyte and a few megabytes.
  static constexpr int64_t block_rows = 448;
  static constexpr int64_t block_columns = 2048;
};

// The lanes of one factor: how to copy some of them into a panel. What is read, and how, the derived struct says.
template <class Math>
struct LaneSource {
  // Writes `lanes` lanes from `lane` on, of `depth` steps from `depth_begin` on, to panel[(d * planes + plane) * width
  // + l]; lanes from `lanes` to `width` become zero.
  using Pack = void (*)(const LaneSource& source, int64_t lane, int64_t lanes, int64_t depth_begin, int64_t depth,
                        int64_t width, gemm_real_t<Math>* panel);
  Pack pack;
  bool depths_are_far;  // in memory, while lanes lie side by side: those of a row-major B
};

template <class T>
struct MatrixRef {
  T* data;
  int64_t row_stride, column_stride;
  MatrixRef at(int64_t row, int64_t column) const {
    return {data + row * row_stride + column * column_stride, row_stride, column_stride};
  }
  MatrixRef transposed() const { return {data, column_stride, row_stride}; }
};

// Numbers (of the real type) that packed lanes take.
template <class Math>
constexpr int64_t packed_rows_size(int64_t rows, int64_t depth) {
  return rows * depth * TileShape<Math>::planes;
}
template <class Math>
constexpr int64_t packed_columns_size(int64_t columns, int64_t depth) {
  using Shape = TileShape<Math>;
  return (columns + Shape::columns - 1) / Shape::columns * Shape::columns * depth * Shape::planes;
}

// The largest step that splits `count` into equal parts of at most `most`, in multiples of `unit`.
inline int64_t even_step(int64_t count, int64_t most, int64_t unit) {
  const int64_t parts = (count + most - 1) / most;
  const int64_t step = (count + parts - 1) / parts;
  return (step + unit - 1) / unit * unit;
}

// Packs rows of A, or columns of B, over a range of the depth.
template <class Math>
void pack_rows(const LaneSource<Math>& a, int64_t row, int64_t rows, int64_t depth_begin, int64_t depth,
               gemm_real_t<Math>* to);
template <class Math>
void pack_columns(const LaneSource<Math>& b, int64_t column, int64_t columns, int64_t depth_begin, int64_t depth,
                  gemm_real_t<Math>* to);

// c = alpha a b + beta c for packed factors of one depth. With beta 0, c need not be initialised.
template <class Math>
void multiply_packed(int64_t rows, int64_t columns, int64_t depth, const gemm_real_t<Math>* a,
                     const gemm_real_t<Math>* b, Math alpha, Math beta, MatrixRef<Math> c);

// The whole product: packs block by block, into memory that it takes from the allocator.
template <class Math>
void multiply(int64_t rows, int64_t columns, int64_t depth, const LaneSource<Math>& a, const LaneSource<Math>& b,
              Math alpha, Math beta, MatrixRef<Math> c);

}  // namespace rush::cpu
