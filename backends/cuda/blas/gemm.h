// The matrix product, for kernels that call it.
#pragma once
#include "core/tensor.h"

namespace rush::cuda {

// c = beta c + alpha a b, for each matrix of a batch: (B, n, k) x (B, k, m) -> (B, n, m). It takes any strides, any
// number of elements and any dtype but bool; elements of c must not overlap. With beta 0, c need not be initialised. If
// a and b have 16 bits, c may be float32, which is the accumulator's type.
void gemm(const Tensor& c, const Tensor& a, const Tensor& b, const Scalar& beta, const Scalar& alpha);

// c = beta c, the product with no terms.
void scale_result(const Tensor& c, const Scalar& beta);

}  // namespace rush::cuda
