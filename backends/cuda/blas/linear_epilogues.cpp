// The affine map with GELU, and gradients of affine maps.
#include "backends/cuda/blas/epilogue.h"
#include "backends/cuda/blas/gemm.h"
#include "backends/cuda/register.h"
#include "core/ops/activation.h"
#include "core/ops/copy.h"
#include "core/ops/fused.h"

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
  const Tensor a = batch_of_one(input), b = batch_of_one(weight, true);
  const Epilogue epilogue = pre.defined() ? (bias.defined() ? Epilogue::GeluAuxBias : Epilogue::GeluAux)
                                          : (bias.defined() ? Epilogue::GeluBias : Epilogue::Gelu);
  if (has_gelu_epilogue(out) && multiply_with_epilogue({batch_of_one(out), a, b, epilogue, bias, pre})) return;
  const Tensor sum = pre.defined() ? pre : detail::empty_contiguous(out.sizes(), out.scalar_type(), out.device());
  if (bias.defined()) assign(sum, bias);
  gemm(batch_of_one(sum), a, b, bias.defined() ? 1 : 0, 1);
  assign(out, gelu(sum, "tanh"));
}

void linear_parameter_gradients(const Tensor& grad_weight, const Tensor& grad_bias, const Tensor& grad,
                                const Tensor& input) {
  const bool product = grad_weight.numel() > 0 && grad.numel() > 0;
  const Tensor c = batch_of_one(grad_weight), a = batch_of_one(grad, true), b = batch_of_one(input), none;
  if (product && grad_bias.defined() && multiply_with_epilogue({c, a, b, Epilogue::BiasGradOfA, grad_bias, none}))
    return;
  native::linear_parameter_gradients_by_parts(grad_weight, grad_bias, grad, input);
}

void register_linear_epilogues() {
  kernels::linear_gelu.set(kCUDA, linear_gelu);
  kernels::linear_parameter_gradients.set(kCUDA, linear_parameter_gradients);
}

}  // namespace rush::cuda
