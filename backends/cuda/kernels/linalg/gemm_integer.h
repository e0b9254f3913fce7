// Products of integer matrices, which NVIDIA's libraries lack.
#pragma once
#include "core/tensor.h"

namespace rush::cuda {

// c = beta c + alpha a b as in gemm (backends/cuda/blas/gemm.h), for integers: beta and alpha are truncated to
// integers, and sums wrap around.
void gemm_integer(const Tensor& c, const Tensor& a, const Tensor& b, const Scalar& beta, const Scalar& alpha);

}  // namespace rush::cuda
