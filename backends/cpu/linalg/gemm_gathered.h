// Products whose operands are read where they lie.
#pragma once
#include "backends/cpu/linalg/gemm.h"

namespace rush::cpu {

// Rows of a product that lie anywhere in memory: the number of row i at depth d is first[i][offsets[d]].
template <class Math>
struct GatheredRows {
  const Math* const* first;
  const int64_t* offsets;
};

// Vectors of columns, whole ones: those at depth d begin at data[d * step]. A packed panel (see pack_columns) is one,
// and so are neighbouring columns of a row-major matrix.
template <class Math>
struct ColumnVectors {
  const Math* data;
  int64_t step, vectors;
};

// sums[i * row_stride + j] = the product of at most MR rows with one or two vectors of columns; is added to what is
// there with `adds`. For float and double.
template <class Math>
void multiply_gathered(int64_t rows, int64_t depth, const GatheredRows<Math>& a, const ColumnVectors<Math>& b,
                       bool adds, Math* sums, int64_t row_stride);

}  // namespace rush::cpu
