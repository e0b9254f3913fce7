#include "backends/cpu/linalg/gemm_gathered.h"

#include <array>
#include <utility>

#include "backends/cpu/view/transpose.h"

namespace rush::cpu {

namespace {

// As multiply_tile of gemm_impl.h. All rows have the same offset at one depth, so that an index register serves them.
template <class Math, int rows, int vectors>
void gathered_tile(int64_t depth, const GatheredRows<Math>& a, const ColumnVectors<Math>& b, bool adds, Math* out,
                   int64_t row_stride) {
  using Vector = typename VectorOf<Math, kVectorBytes>::type;
  constexpr int width = TileShape<Math>::width;
  const Math* first[rows];
#pragma GCC unroll 16
  for (int i = 0; i < rows; ++i) first[i] = a.first[i];
  const Math* from = b.data;
  Vector sums[rows][vectors] = {};
  for (int64_t d = 0; d < depth; ++d) {
    Vector columns[vectors];
#pragma GCC unroll 2
    for (int j = 0; j < vectors; ++j) columns[j] = *reinterpret_cast<const Vector*>(from + j * width);
    const int64_t offset = a.offsets[d];
#pragma GCC unroll 16
    for (int i = 0; i < rows; ++i) {
#pragma GCC unroll 2
      for (int j = 0; j < vectors; ++j) sums[i][j] += first[i][offset] * columns[j];
    }
    from += b.step;
  }
#pragma GCC unroll 16
  for (int i = 0; i < rows; ++i) {
#pragma GCC unroll 2
    for (int j = 0; j < vectors; ++j) {
      auto& to = *reinterpret_cast<Vector*>(out + i * row_stride + j * width);
      to = adds ? to + sums[i][j] : sums[i][j];
    }
  }
}

template <class Math>
using GatheredFn = void (*)(int64_t, const GatheredRows<Math>&, const ColumnVectors<Math>&, bool, Math*, int64_t);

template <class Math, int vectors, int... rows>
constexpr std::array<GatheredFn<Math>, sizeof...(rows)> gathered_functions(std::integer_sequence<int, rows...>) {
  return {gathered_tile<Math, rows + 1, vectors>...};
}

}  // namespace

template <class Math>
void multiply_gathered(int64_t rows, int64_t depth, const GatheredRows<Math>& a, const ColumnVectors<Math>& b,
                       bool adds, Math* sums, int64_t row_stride) {
  constexpr auto heights = std::make_integer_sequence<int, TileShape<Math>::MR>();
  static constexpr auto one = gathered_functions<Math, 1>(heights), two = gathered_functions<Math, 2>(heights);
  (b.vectors == 2 ? two : one)[static_cast<size_t>(rows - 1)](depth, a, b, adds, sums, row_stride);
}

template void multiply_gathered(int64_t, int64_t, const GatheredRows<float>&, const ColumnVectors<float>&, bool, float*,
                                int64_t);
template void multiply_gathered(int64_t, int64_t, const GatheredRows<double>&, const ColumnVectors<double>&, bool,
                                double*, int64_t);

}  // namespace rush::cpu
