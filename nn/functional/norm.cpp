#include "nn/functional/norm.h"

#include "core/ops/nn/norm.h"
#include "core/ops/nn/pool.h"
#include "core/ops/pointwise/binary.h"
#include "core/ops/view/pad.h"
#include "core/print/bracketed.h"
#include "nn/functional/optional_tensor.h"

namespace rush::nn::functional {

namespace {

int64_t values_per_channel(const Tensor& input) {
  DimVector sizes(input.sizes());
  sizes[1] = 1;
  return checked_numel(sizes);
}

void check_batch_norm_input(const char* op, const Tensor& input, bool training) {
  RUSH_CHECK_VALUE(input.dim() >= 2, op, ": expected an input of at least 2 dimensions, got shape ", input.sizes());
  RUSH_CHECK_VALUE(!training || values_per_channel(input) != 1, op,
                   ": Expected more than 1 value per channel when training, got input size ", bracketed(input.sizes()));
}

}  // namespace

Tensor batch_norm(const Tensor& input, const Tensor& running_mean, const Tensor& running_var,
                  const BatchNormFuncOptions& o) {
  check_batch_norm_input("batch_norm", input, o.training());
  return rush::batch_norm(input, optional_tensor(o.weight()), optional_tensor(o.bias()), optional_tensor(running_mean),
                          optional_tensor(running_var), o.training(), o.momentum(), o.eps(), /*cudnn_enabled=*/true);
}

Tensor batch_norm_relu(const Tensor& input, const Tensor& residual, const Tensor& running_mean,
                       const Tensor& running_var, const BatchNormFuncOptions& o) {
  check_batch_norm_input("batch_norm_relu", input, o.training());
  return rush::batch_norm_relu(input, optional_tensor(residual), optional_tensor(o.weight()), optional_tensor(o.bias()),
                               optional_tensor(running_mean), optional_tensor(running_var), o.training(), o.momentum(),
                               o.eps());
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

Tensor instance_norm(const Tensor& input, const InstanceNormFuncOptions& o) {
  RUSH_CHECK_VALUE(input.dim() >= 3, "instance_norm: expected an input of at least 3 dimensions, got shape ",
                   input.sizes());
  RUSH_CHECK_VALUE(!o.use_input_stats() || checked_numel(input.sizes().slice(2)) != 1,
                   "instance_norm: Expected more than 1 spatial element when training, got input size ",
                   bracketed(input.sizes()));
  return rush::instance_norm(input, optional_tensor(o.weight()), optional_tensor(o.bias()),
                             optional_tensor(o.running_mean()), optional_tensor(o.running_var()), o.use_input_stats(),
                             o.momentum(), o.eps(), /*cudnn_enabled=*/true);
}

Tensor local_response_norm(const Tensor& input, const LocalResponseNormFuncOptions& o) {
  RUSH_CHECK_VALUE(input.dim() >= 3, "local_response_norm: expected an input of at least 3 dimensions, got shape ",
                   input.sizes());
  RUSH_CHECK_VALUE(o.size() > 0, "local_response_norm: size must be positive, got ", o.size());
  if (input.numel() == 0) return input;
  // (N, 1, C, spatial), so that a window over channels is one of two dimensions.
  const Tensor squares = (input * input).reshape({input.size(0), 1, input.size(1), -1});
  const Tensor padded = constant_pad_nd(squares, {0, 0, o.size() / 2, (o.size() - 1) / 2});
  const Tensor means = rush::avg_pool2d(padded, {o.size(), 1}, {1, 1}).reshape(input.sizes());
  return input / (means * o.alpha() + o.k()).pow(o.beta());
}

Tensor normalize(const Tensor& input, const NormalizeFuncOptions& o) {
  const Tensor length = input.norm(o.p(), o.dim(), /*keepdim=*/true).clamp_min(o.eps());
  const Tensor result = input / length.expand_as(input);
  if (!o.out()) return result;
  Tensor out = *o.out();
  return out.resize_(result.sizes()).copy_(result);
}

}  // namespace rush::nn::functional
