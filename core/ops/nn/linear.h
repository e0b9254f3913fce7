// Affine maps and bilinear forms.
#pragma once
#include "core/dispatch/op.h"

namespace rush {

namespace ops {
inline constinit Op<Tensor(const Tensor&, const Tensor&, const std::optional<Tensor>&)> linear{
    "aten::linear(Tensor input, Tensor weight, Tensor? bias=None) -> Tensor"};
inline constinit Op<Tensor(const Tensor&, const Tensor&, const Tensor&, const std::optional<Tensor>&)> bilinear{
    "aten::bilinear(Tensor input1, Tensor input2, Tensor weight, Tensor? bias=None) -> Tensor"};
}  // namespace ops

/// input weight^T + bias: (..., in) x (out, in) [+ (out)] -> (..., out). A weight of shape (in) drops the last
/// dimension. Throws ValueError on shapes that do not fit and TypeError when the dtypes differ.
inline Tensor linear(const Tensor& input, const Tensor& weight, const std::optional<Tensor>& bias = std::nullopt) {
  return ops::linear(input, weight, bias);
}
/// out_k = input1^T weight_k input2 + bias_k: (..., n), (..., m) x (k, n, m) [+ (k)] -> (..., k).
inline Tensor bilinear(const Tensor& input1, const Tensor& input2, const Tensor& weight,
                       const std::optional<Tensor>& bias = std::nullopt) {
  return ops::bilinear(input1, input2, weight, bias);
}

}  // namespace rush
