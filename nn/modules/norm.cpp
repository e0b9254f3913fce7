#include "nn/modules/norm.h"

#include <algorithm>

#include "core/ops/basic.h"
#include "core/ops/factory/range.h"
#include "core/ops/nn/pool.h"
#include "core/ops/view/pad.h"
#include "nn/functional/norm.h"
#include "nn/module_text.h"

namespace rush::nn {

namespace {

// What stands between the brackets when a module is printed.
template <class Options>
detail::ModuleText describe_channels(const Options& o) {
  return detail::options_text(o.num_features(), ", eps=", o.eps(), ", momentum=", o.momentum(), ", affine=", o.affine(),
                              ", track_running_stats=", o.track_running_stats());
}
detail::ModuleText describe(const LocalResponseNormOptions& o) {
  return detail::options_text(o.size(), ", alpha=", o.alpha(), ", beta=", o.beta(), ", k=", o.k());
}

}  // namespace

template <size_t D, class Derived>
void BatchNormImplBase<D, Derived>::_check_input_dim(const Tensor& input) {
  constexpr auto dims = static_cast<int64_t>(D) + 2;
  RUSH_CHECK_VALUE(input.dim() == dims || (D == 1 && input.dim() == 2), "BatchNorm", D, "d: expected ",
                   D == 1   ? "2D or 3D"
                   : D == 2 ? "4D"
                            : "5D",
                   " input (got ", input.dim(), "D input of shape ", input.sizes(), ")");
}

template <size_t D, class Derived>
auto BatchNormImplBase<D, Derived>::next_call(const Tensor& input) -> Call {
  _check_input_dim(input);
  const double momentum = this->next_momentum();
  const bool by_batch = this->is_training() || !this->running_mean.defined();
  // Running statistics of an untracked module neither are used nor change.
  const bool uses_running = !this->is_training() || this->options.track_running_stats();
  return {uses_running ? this->running_mean : Tensor(), uses_running ? this->running_var : Tensor(),
          functional::BatchNormFuncOptions()
              .weight(this->weight)
              .bias(this->bias)
              .training(by_batch)
              .momentum(momentum)
              .eps(this->options.eps())};
}

template <size_t D, class Derived>
Tensor BatchNormImplBase<D, Derived>::forward(const Tensor& input) {
  const ModuleScope scope(*this);
  const Call call = next_call(input);
  return functional::batch_norm(input, call.running_mean, call.running_var, call.options);
}

template <size_t D, class Derived>
Tensor BatchNormImplBase<D, Derived>::forward_relu(const Tensor& input, const Tensor& residual) {
  const ModuleScope scope(*this);
  const Call call = next_call(input);
  return functional::batch_norm_relu(input, residual, call.running_mean, call.running_var, call.options);
}

template <size_t D, class Derived>
void BatchNormImplBase<D, Derived>::pretty_print(std::ostream& stream) const {
  stream << detail::module_text("BatchNorm", D, "d(", describe_channels(this->options), ")");
}

template <size_t D, class Derived>
void InstanceNormImpl<D, Derived>::_check_input_dim(const Tensor& input) {
  constexpr auto dims = static_cast<int64_t>(D) + 2;
  RUSH_CHECK_VALUE(input.dim() == dims || input.dim() == dims - 1, "InstanceNorm", D, "d: expected ", dims - 1, "D or ",
                   dims, "D input (got ", input.dim(), "D input of shape ", input.sizes(), ")");
}

template <size_t D, class Derived>
Tensor InstanceNormImpl<D, Derived>::forward(const Tensor& input) {
  const ModuleScope scope(*this);
  _check_input_dim(input);
  const bool batched = input.dim() == static_cast<int64_t>(D) + 2;
  const Tensor result =
      functional::instance_norm(batched ? input : input.unsqueeze(0),
                                functional::InstanceNormFuncOptions()
                                    .running_mean(this->running_mean)
                                    .running_var(this->running_var)
                                    .weight(this->weight)
                                    .bias(this->bias)
                                    .use_input_stats(this->is_training() || !this->options.track_running_stats())
                                    .momentum(this->options.momentum())
                                    .eps(this->options.eps()));
  return batched ? result : result.squeeze(0);
}

template <size_t D, class Derived>
void InstanceNormImpl<D, Derived>::pretty_print(std::ostream& stream) const {
  stream << detail::module_text("InstanceNorm", D, "d(", describe_channels(this->options), ")");
}

#define RUSH_NORM_CLASSES(D)                                \
  template class BatchNormImplBase<D, BatchNorm##D##dImpl>; \
  template class InstanceNormImpl<D, InstanceNorm##D##dImpl>;
RUSH_NORM_CLASSES(1)
RUSH_NORM_CLASSES(2)
RUSH_NORM_CLASSES(3)
#undef RUSH_NORM_CLASSES

RUSH_OPTIONS_MODULE_BODY(LocalResponseNorm, local_response_norm)

void CrossMapLRN2dImpl::reset() {
  RUSH_CHECK_VALUE(options.size() > 0, "CrossMapLRN2d: size must be positive, got ", options.size());
}
Tensor CrossMapLRN2dImpl::forward(const Tensor& input) {
  const ModuleScope scope(*this);
  RUSH_CHECK_VALUE(input.dim() == 4, "CrossMapLRN2d: expected 4 dimensions, got shape ", input.sizes());
  if (input.numel() == 0) return input;
  const int64_t half = (options.size() + 1) / 2, channels = input.size(1), reach = std::min(half, channels) - 1;
  // (N, 1, C, H W), so that a window over channels is one of two dimensions.
  const Tensor squares = (input * input).reshape({input.size(0), 1, channels, -1});
  const Tensor padded = constant_pad_nd(squares, {0, 0, reach, reach});
  Tensor sums = avg_pool2d(padded, {2 * reach + 1, 1}, {1, 1}, 0, false, true, /*divisor_override=*/1);
  const Tensor late = arange(0, channels, input.options().dtype(kInt64)).ge(half).to(input.scalar_type());
  sums = sums + squares.narrow(2, 0, 1) * late.view({-1, 1});
  const Tensor scale =
      sums.reshape(input.sizes()) * (options.alpha() / static_cast<double>(options.size())) + options.k();
  return input * scale.pow(-options.beta());
}
RUSH_PRINT_OPTIONS(CrossMapLRN2d)

LayerNormImpl::LayerNormImpl(LayerNormOptions options) : options(std::move(options)) { LayerNormImpl::reset(); }

void LayerNormImpl::reset() {
  const bool affine = options.elementwise_affine(), has_bias = affine && options.bias();
  weight = register_parameter("weight", affine ? rush::empty(options.normalized_shape()) : Tensor(), affine);
  bias = register_parameter("bias", has_bias ? rush::empty(options.normalized_shape()) : Tensor(), has_bias);
  reset_parameters();
}

void LayerNormImpl::reset_parameters() {
  if (weight.defined()) init::ones_(weight);
  if (bias.defined()) init::zeros_(bias);
}

void LayerNormImpl::pretty_print(std::ostream& stream) const {
  stream << detail::module_text("LayerNorm(", options.normalized_shape(), ", eps=", options.eps(),
                                ", elementwise_affine=", options.elementwise_affine(), ")");
}

Tensor LayerNormImpl::forward(const Tensor& input) {
  const ModuleScope scope(*this);
  return functional::layer_norm(
      input, functional::LayerNormFuncOptions(options.normalized_shape()).weight(weight).bias(bias).eps(options.eps()));
}

RMSNormImpl::RMSNormImpl(RMSNormOptions options) : options(std::move(options)) { RMSNormImpl::reset(); }

void RMSNormImpl::reset() {
  const bool affine = options.elementwise_affine();
  weight = register_parameter("weight", affine ? rush::empty(options.normalized_shape()) : Tensor(), affine);
  reset_parameters();
}

void RMSNormImpl::reset_parameters() {
  if (weight.defined()) init::ones_(weight);
}

void RMSNormImpl::pretty_print(std::ostream& stream) const {
  stream << detail::module_text("RMSNorm(", options.normalized_shape(), ", eps=", options.eps(),
                                ", elementwise_affine=", options.elementwise_affine(), ")");
}

Tensor RMSNormImpl::forward(const Tensor& input) {
  const ModuleScope scope(*this);
  return functional::rms_norm(
      input, functional::RMSNormFuncOptions(options.normalized_shape()).weight(weight).eps(options.eps()));
}

GroupNormImpl::GroupNormImpl(const GroupNormOptions& options) : options(options) { GroupNormImpl::reset(); }

void GroupNormImpl::reset() {
  RUSH_CHECK_VALUE(options.num_groups() > 0 && options.num_channels() % options.num_groups() == 0,
                   "GroupNorm: ", options.num_channels(), " channels cannot be divided into ", options.num_groups(),
                   " groups");
  weight = register_parameter("weight", options.affine() ? empty(options.num_channels()) : Tensor(), options.affine());
  bias = register_parameter("bias", options.affine() ? empty(options.num_channels()) : Tensor(), options.affine());
  reset_parameters();
}

void GroupNormImpl::reset_parameters() {
  if (weight.defined()) init::ones_(weight);
  if (bias.defined()) init::zeros_(bias);
}

void GroupNormImpl::pretty_print(std::ostream& stream) const {
  stream << detail::module_text("GroupNorm(", options.num_groups(), ", ", options.num_channels(),
                                ", eps=", options.eps(), ", affine=", options.affine(), ")");
}

Tensor GroupNormImpl::forward(const Tensor& input) {
  const ModuleScope scope(*this);
  return functional::group_norm(
      input, functional::GroupNormFuncOptions(options.num_groups()).weight(weight).bias(bias).eps(options.eps()));
}

}  // namespace rush::nn
