// linear with GELU, and the gradients of linear's parameters.
#include "backends/cuda/blas/epilogue.h"
#include "backends/cuda/blas/gemm.h"
#include "backends/cuda/register.h"
#include "core/ops/nn/fused.h"
#include "core/ops/pointwise/activation.h"
#include "core/ops/view/copy.h"

namespace rush::cuda {

namespace {

using native::batch_of_one;

void assign(const Tensor& target, const Tensor& source) {
  Tensor to = target;
  native::copy_(to, source, false);
}

// cuBLASLt's GELU has the precision of float32 even in float64.
bool has_gelu_epilogue(const Tensor& t) { return t.scalar_type() != kFloat64; }

}  // namespace

void linear_gelu(const Tensor& out, const Tensor& pre, const Tensor& input, const Tensor& weight, const Tensor& bias) {
  if (out.numel() == 0) return;
  const Tensor c = batch_of_one(out), a = batch_of_one(input), b = batch_of_one(weight, true);
  if (has_gelu_epilogue(out) && multiply_with_epilogue({c, a, b, Epilogue::GeluAuxBias, bias, pre})) return;
  assign(pre, bias);
  gemm(batch_of_one(pre), a, b, 1, 1);
  assign(out, gelu(pre, "tanh"));
}

void register_linear_epilogues() {
  kernels::linear_gelu.set_by_parts(kCUDA, linear_gelu);
  // A product and a sum: cuBLASLt's epilogue for the sum of rows runs a separate kernel, too.
  kernels::linear_parameter_gradients.set_by_parts(kCUDA, native::linear_parameter_gradients_by_parts);
}

}  // namespace rush::cuda
