// The definitions of the templates of gemm.h: the innermost loop, packing, and the loops over blocks. See Note [How a
// product is computed].
#pragma once
#include <algorithm>
#include <array>

#include "backends/cpu/linalg/gemm_store.h"
#include "backends/cpu/scratch.h"
#include "backends/cpu/view/transpose.h"

namespace rush::cpu {

// The innermost loop: the accumulators of a tile stay in registers for all depths. The other counts are constants, so
// that the compiler unrolls their loops.
template <class Math, int rows, int vectors>
void multiply_tile(int64_t depth, const gemm_real_t<Math>* a, const gemm_real_t<Math>* b, const TileResult<Math>& out) {
  using Real = gemm_real_t<Math>;
  using Vector = typename VectorOf<Real, kVectorBytes>::type;
  constexpr int planes = TileShape<Math>::planes;
  constexpr int width = TileShape<Math>::width;
  // The rows of C are in different cache lines; without prefetching, the end would wait for one after the other.
#pragma GCC unroll 16
  for (int i = 0; i < rows; ++i) {
    __builtin_prefetch(out.c.data + i * out.c.row_stride, 1);
    if (vectors * planes == 2) __builtin_prefetch(out.c.data + i * out.c.row_stride + width, 1);
  }
  Vector sums[planes][rows][vectors] = {};
  for (int64_t d = 0; d < depth; ++d) {
    Vector columns[planes][vectors];
#pragma GCC unroll 2
    for (int p = 0; p < planes; ++p) {
#pragma GCC unroll 2
      for (int j = 0; j < vectors; ++j) {
        columns[p][j] = *reinterpret_cast<const Vector*>(b + (p * vectors + j) * width);
      }
    }
#pragma GCC unroll 16
    for (int i = 0; i < rows; ++i) {
#pragma GCC unroll 2
      for (int j = 0; j < vectors; ++j) {
        if constexpr (planes == 1) {
          sums[0][i][j] += a[i] * columns[0][j];
        } else {
          sums[0][i][j] += a[i] * columns[0][j];
          sums[1][i][j] += a[i] * columns[1][j];
          sums[0][i][j] -= a[rows + i] * columns[1][j];
          sums[1][i][j] += a[rows + i] * columns[0][j];
        }
      }
    }
    a += planes * rows;
    b += planes * vectors * width;
  }
  if constexpr (planes == 1) {
    if (out.columns == vectors * width && out.c.column_stride == 1) {
#pragma GCC unroll 16
      for (int i = 0; i < rows; ++i) {
#pragma GCC unroll 2
        for (int j = 0; j < vectors; ++j) {
          auto& to = *reinterpret_cast<Vector*>(out.c.data + i * out.c.row_stride + j * width);
          to = out.beta == Real(0) ? out.alpha * sums[0][i][j] : out.beta * to + out.alpha * sums[0][i][j];
        }
      }
      return;
    }
  }
  alignas(kVectorBytes) Real memory[planes * rows * vectors * width];
#pragma GCC unroll 2
  for (int p = 0; p < planes; ++p) {
#pragma GCC unroll 16
    for (int i = 0; i < rows; ++i) {
#pragma GCC unroll 2
      for (int j = 0; j < vectors; ++j) {
        *reinterpret_cast<Vector*>(memory + ((p * rows + i) * vectors + j) * width) = sums[p][i][j];
      }
    }
  }
  store_tile<Math>(memory, rows, vectors * width, out);
}

template <class Math>
using TileFn = void (*)(int64_t, const gemm_real_t<Math>*, const gemm_real_t<Math>*, const TileResult<Math>&);

template <class Math, int vectors, int... rows>
constexpr std::array<TileFn<Math>, sizeof...(rows)> tile_functions(std::integer_sequence<int, rows...>) {
  return {multiply_tile<Math, rows + 1, vectors>...};
}

// There is a function for every height up to MR, so that no row is wasted, and for every width in vectors.
template <class Math>
TileFn<Math> tile_function(int64_t rows, int64_t vectors) {
  using Shape = TileShape<Math>;
  constexpr auto heights = std::make_integer_sequence<int, Shape::MR>();
  static constexpr auto one = tile_functions<Math, 1>(heights);
  if constexpr (Shape::NR > Shape::width) {
    static constexpr auto two = tile_functions<Math, 2>(heights);
    if (vectors == 2) return two[static_cast<size_t>(rows - 1)];
  }
  return one[static_cast<size_t>(rows - 1)];
}

// Splits rows into the fewest tiles, of heights that differ by at most one.
class RowTiles {
 public:
  RowTiles(int64_t rows, int64_t most)
      : count_((rows + most - 1) / most), low_(rows / count_), taller_(rows % count_) {}
  int64_t count() const { return count_; }
  int64_t height(int64_t tile) const { return tile < taller_ ? low_ + 1 : low_; }
  int64_t first_row(int64_t tile) const { return tile * low_ + std::min(tile, taller_); }

 private:
  int64_t count_, low_, taller_;
};

template <class Math>
void pack_rows(const LaneSource<Math>& a, int64_t row, int64_t rows, int64_t depth_begin, int64_t depth,
               gemm_real_t<Math>* to) {
  const RowTiles tiles(rows, TileShape<Math>::MR);
  for (int64_t t = 0; t < tiles.count(); ++t) {
    const int64_t height = tiles.height(t);
    a.pack(a, row + tiles.first_row(t), height, depth_begin, depth, height, to);
    to += packed_rows_size<Math>(height, depth);
  }
}

// A row-major B is packed 16 depths at a time for all panels, so that its rows are read contiguously. Panel by panel,
// it would be read with the stride of a row, which no hardware prefetcher follows.
template <class Math>
void pack_columns(const LaneSource<Math>& b, int64_t column, int64_t columns, int64_t depth_begin, int64_t depth,
                  gemm_real_t<Math>* to) {
  using Shape = TileShape<Math>;
  const int64_t chunk = b.lanes_are_contiguous ? 16 : depth;
  for (int64_t d = 0; d < depth; d += chunk) {
    gemm_real_t<Math>* panel = to;
    for (int64_t j = 0; j < columns; j += Shape::NR) {
      const int64_t lanes = std::min(Shape::NR, columns - j);
      const int64_t step = panel_vectors<Math>(lanes) * Shape::width * Shape::planes;
      b.pack(b, column + j, lanes, depth_begin + d, std::min(chunk, depth - d), step / Shape::planes, panel + d * step);
      panel += depth * step;
    }
  }
}

template <class Math>
void multiply_packed(int64_t rows, int64_t columns, int64_t depth, const gemm_real_t<Math>* a,
                     const gemm_real_t<Math>* b, Math alpha, Math beta, MatrixRef<Math> c) {
  using Shape = TileShape<Math>;
  const RowTiles tiles(rows, Shape::MR);
  for (int64_t j = 0; j < columns; j += Shape::NR) {
    const int64_t lanes = std::min(Shape::NR, columns - j);
    const int64_t vectors = panel_vectors<Math>(lanes);
    const gemm_real_t<Math>* row_panel = a;
    for (int64_t t = 0; t < tiles.count(); ++t) {
      const int64_t height = tiles.height(t);
      tile_function<Math>(height, vectors)(depth, row_panel, b, {c.at(tiles.first_row(t), j), lanes, alpha, beta});
      row_panel += packed_rows_size<Math>(height, depth);
    }
    b += vectors * Shape::width * depth * Shape::planes;
  }
}

template <class Math>
void multiply(int64_t rows, int64_t columns, int64_t depth, const LaneSource<Math>& a, const LaneSource<Math>& b,
              Math alpha, Math beta, MatrixRef<Math> c) {
  using Shape = TileShape<Math>;
  using Real = gemm_real_t<Math>;
  if (rows == 0 || columns == 0) return;
  if (depth == 0) return multiply_packed<Math>(rows, columns, 0, nullptr, nullptr, alpha, beta, c);
  const int64_t row_step = even_step(rows, Shape::MC, 1);
  const int64_t column_step = even_step(columns, Shape::NC, Shape::NR);
  const int64_t depth_step = even_step(depth, Shape::KC, 1);
  const int64_t rows_size = (packed_rows_size<Math>(row_step, depth_step) + 15) / 16 * 16;  // keeps B's panels aligned
  const Scratch<Real> memory(rows_size + packed_columns_size<Math>(column_step, depth_step));
  Real *packed_a = memory.data(), *packed_b = packed_a + rows_size;
  for (int64_t j = 0; j < columns; j += column_step) {
    const int64_t nj = std::min(column_step, columns - j);
    for (int64_t d = 0; d < depth; d += depth_step) {
      const int64_t nd = std::min(depth_step, depth - d);
      pack_columns(b, j, nj, d, nd, packed_b);
      for (int64_t i = 0; i < rows; i += row_step) {
        const int64_t ni = std::min(row_step, rows - i);
        pack_rows(a, i, ni, d, nd, packed_a);
        multiply_packed(ni, nj, nd, packed_a, packed_b, alpha, d == 0 ? beta : Math(1), c.at(i, j));
      }
    }
  }
}

}  // namespace rush::cpu
