// The innermost loop of convolutions whose images have their channels last.
#pragma once
#include "backends/cpu/linalg/gemm.h"

namespace rush::cpu {

// Rows of a product that lie anywhere in memory: the number of row i at depth d is first[i][offsets[d]].
template <class Math>
struct GatheredRows {
  const Math* const* first;
  const int64_t* offsets;
};

// sums[i * row_stride + j] = the product of at most MR rows with a packed panel (see pack_columns) of `vectors` vectors
// of columns; is added to what is there with `adds`. For float and double.
template <class Math>
void multiply_gathered(int64_t rows, int64_t vectors, int64_t depth, const GatheredRows<Math>& a, const Math* panel,
                       bool adds, Math* sums, int64_t row_stride);

}  // namespace rush::cpu
