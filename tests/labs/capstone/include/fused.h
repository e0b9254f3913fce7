// The fused kernel of a capstone: the whole operator in one launch. This header is read by nvcc as well.
#pragma once
#include <cstdint>

namespace capstone {

/// The operator of contiguous float32 tensors, written to `out`. `inputs` has a pointer for each tensor argument, and
/// `number` is the operator's number. The first tensor has `rows` rows of `columns` numbers, its last dimension; both
/// are at least 1. The pointers are a GPU's, or those of the emulated grid.
void fused(const float* const* inputs, float number, float* out, int64_t rows, int64_t columns);

}  // namespace capstone
