// Fronts of batch norm and instance norm.
#include <algorithm>

#include "core/dispatch/registry.h"
#include "core/ops/binary.h"
#include "core/ops/norm.h"
#include "core/ops/norm_arguments.h"
#include "core/ops/reduce.h"
#include "core/ops/register.h"
#include "core/ops/view.h"

namespace rush {

namespace {

using detail::norm_parameter;
using detail::norm_parameter_gradient;
using detail::norm_statistics_type;
using kernels::ChannelLayout;

// The input in a layout whose channels the kernels can walk.
struct Channels {
  Tensor input;
  MemoryFormat format;
  ChannelLayout layout;

  Tensor empty() const { return detail::empty_format(input.sizes(), input.scalar_type(), input.device(), format); }
  // One number for each channel.
  Tensor empty_statistics() const {
    return detail::empty_contiguous(layout.channels, norm_statistics_type(input), input.device());
  }
};

Channels channels_of(const char* op, const Tensor& input) {
  detail::check_norm_input(op, input);
  RUSH_CHECK_VALUE(input.dim() >= 2, op, ": expected a tensor of at least 2 dimensions, got shape ", input.sizes());
  Channels c;
  c.format = input.suggest_memory_format();
  c.input = ops::contiguous(input, c.format);
  c.layout.channels = input.size(1);
  const int64_t others = c.layout.channels > 0 ? input.numel() / c.layout.channels : 0;
  const bool rows = c.format != MemoryFormat::Contiguous;
  c.layout.outer = rows ? others : input.size(0);
  c.layout.inner = rows ? 1 : c.layout.outer > 0 ? others / c.layout.outer : 0;
  return c;
}

// running = (1 - momentum) running + momentum * factor * fresh
void update_running(const OptionalTensor& running, const Tensor& fresh, double momentum, double factor = 1) {
  if (!given(running)) return;
  Tensor target = *running;
  ops::mul_(target, detail::wrapped_number(1 - momentum));
  ops::add_(target, fresh, momentum * factor);
}

// Whether the statistics of a 16-bit input are kept in 16 bits: when no parameter has more.
bool rounds_statistics(const Tensor& input, std::initializer_list<const OptionalTensor*> parameters) {
  if (input.element_size() != 2) return false;
  return std::none_of(parameters.begin(), parameters.end(),
                      [](const OptionalTensor* t) { return given(*t) && (*t)->element_size() != 2; });
}

// 1 / sqrt(running_var + eps)
Tensor running_invstd(const Tensor& running_var, double eps) { return (running_var + eps).rsqrt(); }

}  // namespace

namespace native {

static NormResult native_batch_norm(const Tensor& input, const OptionalTensor& weight, const OptionalTensor& bias,
                                    const OptionalTensor& running_mean, const OptionalTensor& running_var,
                                    bool training, double momentum, double eps) {
  const char* op = "batch_norm";
  const Channels c = channels_of(op, input);
  const IntArrayRef size = c.layout.channels;
  const Tensor w = norm_parameter(op, "weight", weight, size, input);
  const Tensor b = norm_parameter(op, "bias", bias, size, input);
  const Tensor old_mean = norm_parameter(op, "running_mean", running_mean, size, input);
  const Tensor old_var = norm_parameter(op, "running_var", running_var, size, input);
  RUSH_CHECK_VALUE(training || (old_mean.defined() && old_var.defined()), op,
                   ": running_mean and running_var are needed outside training");
  const DeviceType device = input.device().type;
  const Tensor out = c.empty();
  const bool rounded = rounds_statistics(input, {&weight, &bias, &running_mean, &running_var});
  const ScalarType statistics = rounded ? input.scalar_type() : norm_statistics_type(input);
  if (!training) {
    kernels::channel_affine(device, out, c.input, old_mean, running_invstd(old_var, eps), w, b, c.layout);
    const Tensor none = detail::empty_contiguous(0, statistics, input.device());
    return {out, none, none};
  }
  const Tensor mean = c.empty_statistics(), var = c.empty_statistics(), invstd = c.empty_statistics();
  kernels::batch_norm(device, out, mean, var, invstd, c.input, w, b, eps, rounded, c.layout);
  const auto n = static_cast<double>(c.layout.count());
  update_running(running_mean, mean, momentum);
  update_running(running_var, var, momentum, n / (n - 1));
  return {out, mean.to(statistics), invstd.to(statistics)};
}

static NormResult native_batch_norm_backward(const Tensor& grad, const Tensor& input, const OptionalTensor& weight,
                                             const OptionalTensor& running_mean, const OptionalTensor& running_var,
                                             const OptionalTensor& save_mean, const OptionalTensor& save_invstd,
                                             bool train, double eps, std::array<bool, 3> mask) {
  const char* op = "batch_norm_backward";
  const Channels c = channels_of(op, input);
  const IntArrayRef size = c.layout.channels;
  const Tensor g = detail::norm_grad_output(op, grad, input, c.format);
  const Tensor w = norm_parameter(op, "weight", weight, size, input);
  const Tensor mean = train ? norm_parameter(op, "save_mean", save_mean, size, input)
                            : norm_parameter(op, "running_mean", running_mean, size, input);
  const Tensor spread = train ? norm_parameter(op, "save_invstd", save_invstd, size, input)
                              : norm_parameter(op, "running_var", running_var, size, input);
  RUSH_CHECK_VALUE(mean.defined() && spread.defined(), op, ": the ", train ? "saved" : "running",
                   " statistics are missing");
  const Tensor invstd = train ? spread : running_invstd(spread, eps);
  const Tensor dx = mask[0] ? c.empty() : Tensor();
  const Tensor dw = mask[1] ? c.empty_statistics() : Tensor();
  const Tensor db = mask[2] ? c.empty_statistics() : Tensor();
  kernels::batch_norm_backward(input.device().type, dx, dw, db, g, c.input, mean, invstd, w, train, c.layout);
  return {dx, norm_parameter_gradient(dw, weight, input), norm_parameter_gradient(db, weight, input)};
}

// An input without elements has nothing to normalise, and may lack the dimension of the channels.
static Tensor batch_norm_of_nothing(const Tensor& input, const OptionalTensor& weight, const OptionalTensor& bias) {
  Tensor out = ops::clone(input, std::nullopt);
  if (given(weight) && weight->numel() > 0) out = out * weight->select(0, 0);
  if (given(bias) && bias->numel() > 0) out = out + bias->select(0, 0);
  return out;
}

static Tensor batch_norm(const Tensor& input, const OptionalTensor& weight, const OptionalTensor& bias,
                         const OptionalTensor& running_mean, const OptionalTensor& running_var, bool training,
                         double momentum, double eps, bool /*cudnn_enabled*/) {
  if (input.numel() == 0) return batch_norm_of_nothing(input, weight, bias);
  return std::get<0>(ops::native_batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps));
}

// (C) -> (N * C): a sample's channels count as channels of their own.
static OptionalTensor for_each_sample(const OptionalTensor& t, int64_t samples) {
  if (!given(t)) return std::nullopt;
  return ops::reshape(ops::expand(*t, {samples, t->numel()}, false), {samples * t->numel()});
}

// A statistic that each sample moved on its own becomes the mean of theirs.
static void average_samples(const OptionalTensor& target, const OptionalTensor& samples, int64_t count) {
  if (!given(target)) return;
  const DispatchStateGuard below_autograd{KeySet(DispatchKey::Autograd)};
  const Tensor mean = samples->view({count, target->numel()}).sum(0) / static_cast<double>(count);
  target->copy_(mean);
}

static Tensor instance_norm(const Tensor& input, const OptionalTensor& weight, const OptionalTensor& bias,
                            const OptionalTensor& running_mean, const OptionalTensor& running_var, bool use_input_stats,
                            double momentum, double eps, bool cudnn_enabled) {
  RUSH_CHECK_VALUE(input.dim() >= 2, "instance_norm: expected a tensor of at least 2 dimensions, got shape ",
                   input.sizes());
  RUSH_CHECK_VALUE(use_input_stats || (given(running_mean) && given(running_var)),
                   "instance_norm: running_mean and running_var are needed when use_input_stats is false");
  const int64_t samples = input.size(0), channels = input.size(1);
  for (const OptionalTensor* t : {&weight, &bias, &running_mean, &running_var}) {
    RUSH_CHECK_VALUE(!given(*t) || (*t)->sizes() == IntArrayRef(channels), "instance_norm: expected ", channels,
                     " numbers, one a channel, got shape ", given(*t) ? (*t)->sizes() : IntArrayRef());
  }
  DimVector sizes(input.sizes());
  sizes[0] = 1;
  sizes[1] = samples * channels;
  const OptionalTensor mean = for_each_sample(running_mean, samples), var = for_each_sample(running_var, samples);
  const Tensor out =
      ops::batch_norm(input.contiguous().view(sizes), for_each_sample(weight, samples), for_each_sample(bias, samples),
                      mean, var, use_input_stats, momentum, eps, cudnn_enabled);
  if (use_input_stats) {
    average_samples(running_mean, mean, samples);
    average_samples(running_var, var, samples);
  }
  return out.view(input.sizes());
}

}  // namespace native

void register_batch_norm_ops(Registry& r) {
  r.native(ops::native_batch_norm, native::native_batch_norm);
  r.native(ops::native_batch_norm_backward, native::native_batch_norm_backward);
  r.composite(ops::batch_norm, native::batch_norm);
  r.composite(ops::instance_norm, native::instance_norm);
}

}  // namespace rush
