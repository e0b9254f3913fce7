#pragma once
#include "core/tensor.h"

namespace rush::cuda {

// The determinant of each matrix from its LU factors (B, n, n), pivots (B, n), counted from one, and info: zero where
// that is not.
void determinants(const Tensor& out, const Tensor& factors, const Tensor& pivots, const Tensor& info);

}  // namespace rush::cuda
