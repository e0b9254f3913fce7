// The affine map with GELU, and gradients of affine maps.
#include "backends/cuda/blas/epilogue.h"
#include "backends/cuda/blas/gemm.h"
#include "core/ops/activation.h"
#include "core/ops/copy.h"
#include "core/ops/reduce.h"
#include "core/ops/view.h"

namespace rush::cuda {

namespace {

// (n, m) as a batch of one, optionally transposed.
Tensor batch_of_one(const Tensor& t, bool transposed = false) {
  const int64_t i = transposed ? 1 : 0, j = 1 - i;
  return detail::make_view(t, {1, t.sizes()[i], t.sizes()[j]}, {t.numel(), t.strides()[i], t.strides()[j]},
                           t.storage_offset());
}

void assign(const Tensor& target, const Tensor& source) {
  Tensor to = target;
  native::copy_(to, source, false);
}

void store_column_sums(const Tensor& sums, const Tensor& t) {
  if (sums.defined()) assign(sums, t.sum(0));
}

}  // namespace

void linear_gelu(const Tensor& out, const Tensor& pre, const Tensor& input, const Tensor& weight, const Tensor& bias) {
  if (out.numel() == 0) return;
  const Tensor a = batch_of_one(input), b = batch_of_one(weight, true);
  const Epilogue epilogue = pre.defined() ? (bias.defined() ? Epilogue::GeluAuxBias : Epilogue::GeluAux)
                                          : (bias.defined() ? Epilogue::GeluBias : Epilogue::Gelu);
  if (multiply_with_epilogue({batch_of_one(out), a, b, epilogue, bias, pre})) return;
  const Tensor sum = pre.defined() ? pre : detail::empty_contiguous(out.sizes(), out.scalar_type(), out.device());
  if (bias.defined()) assign(sum, bias);
  gemm(batch_of_one(sum), a, b, bias.defined() ? 1 : 0, 1);
  assign(out, gelu(sum, "tanh"));
}

void linear_gelu_backward(const Tensor& grad_pre, const Tensor& grad_bias, const Tensor& grad, const Tensor& weight,
                          const Tensor& pre) {
  if (grad_pre.numel() == 0) return store_column_sums(grad_bias, grad_pre);
  const Tensor c = batch_of_one(grad_pre), a = batch_of_one(grad), b = batch_of_one(weight);
  const Epilogue epilogue = grad_bias.defined() ? Epilogue::DGeluBiasGrad : Epilogue::DGelu;
  if (multiply_with_epilogue({c, a, b, epilogue, grad_bias, pre})) return;
  gemm(c, a, b, 0, 1);
  assign(grad_pre, ops::gelu_backward(grad_pre, pre, "tanh"));
  store_column_sums(grad_bias, grad_pre);
}

void linear_parameter_gradients(const Tensor& grad_weight, const Tensor& grad_bias, const Tensor& grad,
                                const Tensor& input) {
  if (grad_weight.numel() == 0) return store_column_sums(grad_bias, grad);
  const Tensor c = batch_of_one(grad_weight), a = batch_of_one(grad, true), b = batch_of_one(input), none;
  if (grad_bias.defined() && multiply_with_epilogue({c, a, b, Epilogue::BiasGradOfA, grad_bias, none})) return;
  gemm(c, a, b, 0, 1);
  store_column_sums(grad_bias, grad);
}

}  // namespace rush::cuda
