// Where the sums of a tile go: into C, number by number.
#pragma once
#include "backends/cpu/linalg/gemm.h"

namespace rush::cpu {

template <class Math>
struct TileResult {
  MatrixRef<Math> c;
  int64_t columns;  // at most those of the tile
  Math alpha, beta;
};

template <class Math>
Math blend(Math product, const TileResult<Math>& out, const Math& old) {
  return out.beta == Math(0) ? out.alpha * product : out.beta * old + out.alpha * product;
}

// C = alpha sums + beta C, number by number, for sums [plane][row][width] in memory. It serves partial tiles, complex
// numbers, and C whose columns do not have stride 1.
template <class Math>
void store_tile(const gemm_real_t<Math>* sums, int64_t rows, int64_t width, const TileResult<Math>& out) {
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < out.columns; ++j) {
      Math& c = *out.c.at(i, j).data;
      const gemm_real_t<Math>* sum = sums + i * width + j;
      if constexpr (is_complex_v<Math>) {
        c = blend(Math(sum[0], sum[rows * width]), out, c);
      } else {
        c = blend(sum[0], out, c);
      }
    }
  }
}

}  // namespace rush::cpu
