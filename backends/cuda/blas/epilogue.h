// Matrix products by cuBLASLt with an epilogue: the same kernel adds a bias and applies GELU.
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

// Returns false and does nothing if cuBLASLt has no kernel for these dtypes, strides and addresses; it caches the
// answer. No size may be 0.
bool multiply_with_epilogue(const EpilogueProduct& product);

// kernels::linear_gelu: one kernel if cuBLASLt has it, otherwise several.
void linear_gelu(const Tensor& out, const Tensor& pre, const Tensor& input, const Tensor& weight, const Tensor& bias);

}  // namespace rush::cuda
