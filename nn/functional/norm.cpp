#include "nn/functional/norm.h"

#include "core/ops/binary.h"
#include "core/ops/norm.h"
#include "nn/functional/optional_tensor.h"

namespace rush::nn::functional {

Tensor batch_norm(const Tensor& input, const Tensor& running_mean, const Tensor& running_var,
                  const BatchNormFuncOptions& o) {
  RUSH_CHECK_VALUE(input.dim() >= 2, "batch_norm: expected an input of at least 2 dimensions, got shape ",
                   input.sizes());
  RUSH_CHECK_VALUE(!o.training() || input.numel() != input.size(1),
                   "batch_norm: training needs more than 1 value per channel, got an input of shape ", input.sizes());
  return rush::batch_norm(input, optional_tensor(o.weight()), optional_tensor(o.bias()), optional_tensor(running_mean),
                          optional_tensor(running_var), o.training(), o.momentum(), o.eps(), /*cudnn_enabled=*/true);
}

Tensor layer_norm(const Tensor& input, const LayerNormFuncOptions& o) {
  return rush::layer_norm(input, o.normalized_shape(), optional_tensor(o.weight()), optional_tensor(o.bias()), o.eps());
}

Tensor rms_norm(const Tensor& input, const RMSNormFuncOptions& o) {
  return rush::rms_norm(input, o.normalized_shape(), optional_tensor(o.weight()), o.eps());
}

Tensor group_norm(const Tensor& input, const GroupNormFuncOptions& o) {
  return rush::group_norm(input, o.num_groups(), optional_tensor(o.weight()), optional_tensor(o.bias()), o.eps());
}

Tensor normalize(const Tensor& input, const NormalizeFuncOptions& o) {
  const Tensor length = input.norm(o.p(), o.dim(), /*keepdim=*/true).clamp_min(o.eps());
  return input / length.expand_as(input);
}

}  // namespace rush::nn::functional
