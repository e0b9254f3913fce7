// The product of matrices, for kernels that are made of it.
#pragma once
#include "core/tensor.h"

namespace rush::cuda {

// c = beta c + alpha a b, for each matrix of a batch: (B, n, k) x (B, k, m) -> (B, n, m). Any strides, any number of
// elements, any dtype but bool; elements of c do not overlap. With beta 0, c need not be initialised. Products of
// 16-bit factors may be float32, which is what they are summed in.
void gemm(const Tensor& c, const Tensor& a, const Tensor& b, const Scalar& beta, const Scalar& alpha);

}  // namespace rush::cuda
