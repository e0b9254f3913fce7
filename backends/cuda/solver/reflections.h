#pragma once
#include "core/tensor.h"

namespace rush::cuda {

inline constexpr int64_t kMostReflectedRows = 256;

// q (B, n, w), n at most kMostReflectedRows, becomes the first w columns of each product H_0 H_1 ... of reflections
// H_j = 1 - tau_j v_j v_j^H, as LAPACK stores them: tau (B, k), and row j of vectors (B, m, n) has the elements of v_j
// after its j-th, which is 1; those before are 0.
void multiply_reflections(const Tensor& q, const Tensor& vectors, const Tensor& tau);

}  // namespace rush::cuda
