// Products of matrices through cuBLASLt, with what follows them done by the same kernel.
// https://docs.nvidia.com/cuda/cublas/#cublasltepilogue-t
#pragma once
#include "core/tensor.h"

namespace rush::cuda {

// What happens to c = a b before it is stored. GELU is its tanh approximation.
enum class Epilogue {
  Bias,         // + vector
  GeluAuxBias,  // gelu(c + vector), with what gelu was applied to in `aux`
};

struct EpilogueProduct {
  const Tensor& c;  // (1, n, m), written
  const Tensor& a;  // (1, n, k)
  const Tensor& b;  // (1, k, m)
  Epilogue epilogue;
  const Tensor& vector;  // (m)
  const Tensor& aux;     // (n, m), row-major
};

// False, with nothing done, where cuBLASLt has no kernel for these dtypes, strides and addresses; the answer is
// remembered. None of the sizes is 0.
bool multiply_with_epilogue(const EpilogueProduct& product);

// kernels::linear_gelu: with one kernel where it can, else with several.
void linear_gelu(const Tensor& out, const Tensor& pre, const Tensor& input, const Tensor& weight, const Tensor& bias);

}  // namespace rush::cuda
