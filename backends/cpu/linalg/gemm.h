// Matrix products on one thread: blocked for the caches, packed, and computed tile by tile in registers.
#pragma once
#include <cstdint>
#include <type_traits>

#include "backends/cpu/vec.h"
#include "core/scalar_type.h"

namespace rush::cpu {

// Note [How a product is computed]
// C (M, N) = alpha A (M, K) B (K, N) + beta C, after Goto and van de Geijn, "Anatomy of high-performance matrix
// multiplication" (ACM TOMS 34, 2008), with the block sizes MC, NC and KC and the register tile (MR, NR) of BLIS. Code
// that serves A and B alike says "lane" for a row of A or a column of B, and "depth" for the index along K.
//
// A block of B (KC, NC) is copied ("packed") into panels of NR columns, which two vector registers hold; a block of A
// (MC, KC) is packed into panels of MR rows, whose accumulators fill the other registers. A panel is stored as
// [depth][lane], so that the innermost loop (multiply_tile) reads A and B contiguously: for each depth it loads two
// vectors of B and multiplies them by MR numbers of A. The panel of B stays in the L1 cache and the block of A in L2.
//
// Packing does everything that is not plain arithmetic: it handles any strides, converts 16-bit floats and small
// integers to the accumulator's type, and gathers the window of a convolution from its image (conv_image.h). One
// innermost loop therefore serves all.

// The accumulator's type for products of T. Integers wrap around, so it is unsigned.
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

// The real and the imaginary parts of complex numbers are packed and accumulated as two planes of real numbers.
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

// MR: with two vectors of columns for each row, the accumulators fill the registers.
#if defined(__AVX512F__)
inline constexpr int64_t kMR = 14, kComplexMR = 12;
#else
inline constexpr int64_t kMR = 6, kComplexMR = 5;
#endif

template <class Math>
struct TileShape {
  using Real = gemm_real_t<Math>;
  static constexpr int planes = is_complex_v<Math> ? 2 : 1;
  static constexpr int64_t width = kVectorBytes / sizeof(Real);  // of a vector, in numbers
  static constexpr int64_t MR = planes == 1 ? kMR : kComplexMR;
  static constexpr int64_t NR = planes == 1 ? 2 * width : width;
  // With AVX-512, a float32 panel of B (32 KiB) and one of A (14 KiB) fit a 48 KiB L1 cache.
  static constexpr int64_t KC = 256;
  // A float32 block of A takes 448 KiB, and one of B 2 MiB.
  static constexpr int64_t MC = 448;
  static constexpr int64_t NC = 2048;
};

// One operand of a product. A derived struct says where its lanes are in memory, and `pack` copies them into a panel.
template <class Math>
struct LaneSource {
  // Copies lanes [lane, lane + lanes) at depths [depth_begin, depth_begin + depth) to panel[(d * planes + plane) *
  // width
  // + l], and sets lanes [lanes, width) of the panel to zero.
  using Pack = void (*)(const LaneSource& source, int64_t lane, int64_t lanes, int64_t depth_begin, int64_t depth,
                        int64_t width, gemm_real_t<Math>* panel);
  Pack pack;
  bool lanes_are_contiguous;  // neighbouring lanes have stride 1, as in a row-major B
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

// The size of packed rows of A or columns of B, in numbers of the real type.
template <class Math>
constexpr int64_t packed_rows_size(int64_t rows, int64_t depth) {
  return rows * depth * TileShape<Math>::planes;
}
template <class Math>
constexpr int64_t packed_columns_size(int64_t columns, int64_t depth) {
  using Shape = TileShape<Math>;
  return (columns + Shape::NR - 1) / Shape::NR * Shape::NR * depth * Shape::planes;
}
// How many vectors a panel of `columns` <= NR columns takes.
template <class Math>
constexpr int64_t panel_vectors(int64_t columns) {
  return (columns + TileShape<Math>::width - 1) / TileShape<Math>::width;
}

// The size of the blocks if `count` is split evenly into the fewest blocks of at most `most`, rounded up to a multiple
// of `unit`.
inline int64_t even_step(int64_t count, int64_t most, int64_t unit) {
  const int64_t blocks = (count + most - 1) / most;
  const int64_t step = (count + blocks - 1) / blocks;
  return (step + unit - 1) / unit * unit;
}

// Packs rows of A, or columns of B, at depths [depth_begin, depth_begin + depth).
template <class Math>
void pack_rows(const LaneSource<Math>& a, int64_t row, int64_t rows, int64_t depth_begin, int64_t depth,
               gemm_real_t<Math>* to);
template <class Math>
void pack_columns(const LaneSource<Math>& b, int64_t column, int64_t columns, int64_t depth_begin, int64_t depth,
                  gemm_real_t<Math>* to);

// c = alpha a b + beta c for packed a and b. With beta 0, c need not be initialised.
template <class Math>
void multiply_packed(int64_t rows, int64_t columns, int64_t depth, const gemm_real_t<Math>* a,
                     const gemm_real_t<Math>* b, Math alpha, Math beta, MatrixRef<Math> c);

// c = alpha a b + beta c: packs a and b block by block into scratch memory, and calls multiply_packed.
template <class Math>
void multiply(int64_t rows, int64_t columns, int64_t depth, const LaneSource<Math>& a, const LaneSource<Math>& b,
              Math alpha, Math beta, MatrixRef<Math> c);

}  // namespace rush::cpu
