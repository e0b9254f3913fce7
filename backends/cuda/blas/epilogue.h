// Products of matrices through cuBLASLt, with what follows them done by the same kernel.
// https://docs.nvidia.com/cuda/cublas/#cublasltepilogue-t
#pragma once
#include "core/tensor.h"

namespace rush::cuda {

// What happens to c = a b before it is stored. GELU is its tanh approximation.
enum class Epilogue {
  None,
  Bias,      // + vector
  Gelu,      // gelu(c)
  GeluBias,  // gelu(c + vector)
  // The same, which also store what gelu was applied to in `aux`.
  GeluAux,
  GeluAuxBias,
  // c = a b, and vector = the sum of the rows of b, or of the columns of a.
  // cuBLASLt sums only where the numbers that it adds up are not neighbours in memory: for a row-major b, and for an a
  // that is the transpose of a row-major matrix.
  BiasGradOfB,
  BiasGradOfA,
};

struct EpilogueProduct {
  const Tensor& c;  // (1, n, m), written
  const Tensor& a;  // (1, n, k)
  const Tensor& b;  // (1, k, m)
  Epilogue epilogue;
  const Tensor& vector;  // (m) for the bias and its gradient; (m) and (n) for those of b and a
  const Tensor& aux;     // (n, m), row-major
};

// False, with nothing done, where cuBLASLt has no kernel for these dtypes, strides and addresses; the answer is
// remembered. None of the sizes is 0.
bool multiply_with_epilogue(const EpilogueProduct& product);

// The following compute with one kernel where they can, else with several. All matrices are (rows, columns), of one
// dtype.

// out = gelu(pre), pre = input weight^T + bias: (N, in) x (out, in) + (out) -> (N, out), gelu being its tanh
// approximation. An undefined `pre` is not stored; an undefined bias is 0.
void linear_gelu(const Tensor& out, const Tensor& pre, const Tensor& input, const Tensor& weight, const Tensor& bias);
// The gradients of linear(input, weight, bias) by weight and bias: grad_weight (out, in) = grad^T input, grad_bias
// (out) = the sum of the rows of grad, for grad (N, out) and input (N, in).
void linear_parameter_gradients(const Tensor& grad_weight, const Tensor& grad_bias, const Tensor& grad,
                                const Tensor& input);

}  // namespace rush::cuda
