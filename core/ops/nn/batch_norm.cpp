// Fronts of batch norm and instance norm.
#include <algorithm>

#include "core/ops/basic.h"
#include "core/ops/nn/norm.h"
#include "core/ops/nn/norm_arguments.h"
#include "core/ops/nn/running_statistics.h"
#include "core/ops/pointwise/activation.h"
#include "core/ops/register.h"

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

// A tensor of the input's shape and dtype, in its layout.
Tensor like_input(const char* op, const char* argument, const Tensor& t, const Channels& c) {
  detail::check_like_norm_input(op, argument, t, c.input);
  return ops::contiguous(t, c.format);
}

// running = (1 - momentum) running + momentum * factor * fresh
void update_running(const OptionalTensor& running, const Tensor& fresh, double momentum, double factor = 1) {
  if (!given(running)) return;
  Tensor target = *running;
  ops::mul_(target, detail::wrapped_number(1 - momentum));
  ops::add_(target, fresh, momentum * factor);
}

// Both running statistics, if there are any.
void update_running(const OptionalTensor& running_mean, const OptionalTensor& running_var, const Tensor& mean,
                    const Tensor& var, double momentum, double unbias) {
  const auto fits = [&](const Tensor& t) { return t.scalar_type() == mean.scalar_type() && t.is_contiguous(); };
  if (kernels::running_statistics.has(mean.device().type) && given(running_mean) && given(running_var) &&
      fits(*running_mean) && fits(*running_var)) {
    kernels::running_statistics(mean.device().type, *running_mean, *running_var, mean, var, momentum, unbias);
    for (const OptionalTensor* t : {&running_mean, &running_var}) (*t)->bump_version();
    return;
  }
  update_running(running_mean, mean, momentum);
  update_running(running_var, var, momentum, unbias);
}

// Whether the statistics of a 16-bit input are kept in 16 bits: when no parameter has more.
bool rounds_statistics(const Tensor& input, std::initializer_list<const OptionalTensor*> parameters) {
  if (input.element_size() != 2) return false;
  return std::none_of(parameters.begin(), parameters.end(),
                      [](const OptionalTensor* t) { return given(*t) && (*t)->element_size() != 2; });
}

// What a call gives to a batch norm that trains, checked and as the kernels take it.
struct TrainingCall {
  Channels channels;
  Tensor weight, bias;
  OptionalTensor running_mean, running_var;
  bool rounded;  // statistics are

  TrainingCall(const char* op, const Tensor& input, const OptionalTensor& weight, const OptionalTensor& bias,
               const OptionalTensor& running_mean, const OptionalTensor& running_var)
      : channels(channels_of(op, input)),
        weight(norm_parameter(op, "weight", weight, channels.layout.channels, input)),
        bias(norm_parameter(op, "bias", bias, channels.layout.channels, input)),
        running_mean(running_mean),
        running_var(running_var),
        rounded(rounds_statistics(input, {&weight, &bias, &running_mean, &running_var})) {
    norm_parameter(op, "running_mean", running_mean, channels.layout.channels, input);
    norm_parameter(op, "running_var", running_var, channels.layout.channels, input);
  }

  // compute(output, mean, var, invstd) runs the kernel; the running statistics follow.
  template <class Compute>
  NormResult run(double momentum, const Compute& compute) const {
    const Tensor out = channels.empty();
    const Tensor mean = channels.empty_statistics(), var = channels.empty_statistics();
    const Tensor invstd = channels.empty_statistics();
    compute(out, mean, var, invstd);
    const auto n = static_cast<double>(channels.layout.count());
    update_running(running_mean, running_var, mean, var, momentum, n / (n - 1));
    const ScalarType dtype = rounded ? channels.input.scalar_type() : mean.scalar_type();
    return {out, mean.to(dtype), invstd.to(dtype)};
  }
};

// 1 / sqrt(running_var + eps)
Tensor running_invstd(const Tensor& running_var, double eps) { return (running_var + eps).rsqrt(); }

}  // namespace

namespace native {

static NormResult native_batch_norm(const Tensor& input, const OptionalTensor& weight, const OptionalTensor& bias,
                                    const OptionalTensor& running_mean, const OptionalTensor& running_var,
                                    bool training, double momentum, double eps) {
  const char* op = "batch_norm";
  if (training) {
    const TrainingCall call(op, input, weight, bias, running_mean, running_var);
    const Channels& c = call.channels;
    return call.run(momentum, [&](const Tensor& out, const Tensor& mean, const Tensor& var, const Tensor& invstd) {
      kernels::batch_norm(input.device().type, out, mean, var, invstd, c.input, call.weight, call.bias, eps,
                          call.rounded, c.layout);
    });
  }
  const Channels c = channels_of(op, input);
  const IntArrayRef size = c.layout.channels;
  const Tensor w = norm_parameter(op, "weight", weight, size, input);
  const Tensor b = norm_parameter(op, "bias", bias, size, input);
  const Tensor mean = norm_parameter(op, "running_mean", running_mean, size, input);
  const Tensor var = norm_parameter(op, "running_var", running_var, size, input);
  RUSH_CHECK_VALUE(mean.defined() && var.defined(), op, ": running_mean and running_var are needed outside training");
  const Tensor out = c.empty();
  kernels::channel_affine(input.device().type, out, c.input, mean, running_invstd(var, eps), w, b, c.layout);
  const bool rounded = rounds_statistics(input, {&weight, &bias, &running_mean, &running_var});
  const ScalarType statistics = rounded ? input.scalar_type() : norm_statistics_type(input);
  const Tensor none = detail::empty_contiguous(0, statistics, input.device());
  return {out, none, none};
}

static NormResult native_batch_norm_relu(const Tensor& input, const OptionalTensor& residual,
                                         const OptionalTensor& weight, const OptionalTensor& bias,
                                         const OptionalTensor& running_mean, const OptionalTensor& running_var,
                                         double momentum, double eps) {
  const char* op = "batch_norm_relu";
  const TrainingCall call(op, input, weight, bias, running_mean, running_var);
  const Channels& c = call.channels;
  const Tensor other = given(residual) ? like_input(op, "residual", *residual, c) : Tensor();
  return call.run(momentum, [&](const Tensor& out, const Tensor& mean, const Tensor& var, const Tensor& invstd) {
    kernels::batch_norm_relu(input.device().type, out, mean, var, invstd, c.input, other, call.weight, call.bias, eps,
                             call.rounded, c.layout);
  });
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

static std::tuple<Tensor, Tensor, Tensor, Tensor> native_batch_norm_relu_backward(
    const Tensor& grad, const Tensor& output, const Tensor& input, bool has_residual, const OptionalTensor& weight,
    const OptionalTensor& bias, const Tensor& save_mean, const Tensor& save_invstd, std::array<bool, 4> mask,
    const OptionalTensor& grad_residual) {
  const char* op = "batch_norm_relu_backward";
  const Channels c = channels_of(op, input);
  const IntArrayRef size = c.layout.channels;
  const Tensor g = like_input(op, "grad_out", grad, c), out = like_input(op, "output", output, c);
  const Tensor w = norm_parameter(op, "weight", weight, size, input);
  const Tensor b = norm_parameter(op, "bias", bias, size, input);
  const Tensor mean = norm_parameter(op, "save_mean", save_mean, size, input);
  const Tensor invstd = norm_parameter(op, "save_invstd", save_invstd, size, input);
  RUSH_CHECK_VALUE(mean.defined() && invstd.defined(), op, ": the saved statistics are missing");
  RUSH_CHECK_VALUE(
      !given(grad_residual) || (has_residual && grad_residual->scalar_type() == out.scalar_type() &&
                                grad_residual->device() == out.device() && grad_residual->sizes() == out.sizes() &&
                                grad_residual->strides() == out.strides()),
      op, ": grad_residual is not like the output, or there is no residual");
  const Tensor dx = mask[0] ? c.empty() : Tensor();
  const Tensor gated = given(grad_residual) ? *grad_residual : has_residual ? c.empty() : Tensor();
  const Tensor dw = mask[2] ? c.empty_statistics() : Tensor(), db = mask[3] ? c.empty_statistics() : Tensor();
  kernels::batch_norm_relu_backward(input.device().type, dx, gated, dw, db, g, out, c.input, mean, invstd, w, b,
                                    c.layout);
  if (given(grad_residual)) grad_residual->bump_version();
  return {dx, mask[1] ? gated : Tensor(), norm_parameter_gradient(dw, weight, input),
          norm_parameter_gradient(db, bias, input)};
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

static Tensor batch_norm_relu(const Tensor& input, const OptionalTensor& residual, const OptionalTensor& weight,
                              const OptionalTensor& bias, const OptionalTensor& running_mean,
                              const OptionalTensor& running_var, bool training, double momentum, double eps) {
  if (training && input.numel() > 0) {
    return std::get<0>(
        ops::native_batch_norm_relu(input, residual, weight, bias, running_mean, running_var, momentum, eps));
  }
  const Tensor out = ops::batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps, true);
  if (!given(residual)) return ops::relu(out);
  detail::check_like_norm_input("batch_norm_relu", "residual", *residual, input);
  return ops::relu(out + *residual);
}

// (C) -> (N * C): a sample's channels count as channels of their own. A copy, which batch norm may write to.
static OptionalTensor for_each_sample(const OptionalTensor& t, int64_t samples) {
  if (!given(t)) return std::nullopt;
  return ops::repeat(*t, {samples});
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

void kernels::batch_norm_relu_in_parts(const Tensor& output, const Tensor& mean, const Tensor& var,
                                       const Tensor& invstd, const Tensor& input, const Tensor& residual,
                                       const Tensor& weight, const Tensor& bias, double eps, bool rounded,
                                       const ChannelLayout& layout) {
  batch_norm(input.device().type, output, mean, var, invstd, input, weight, bias, eps, rounded, layout);
  if (residual.defined()) output.add_(residual);
  output.relu_();
}

void kernels::batch_norm_relu_backward_in_parts(const Tensor& grad_input, const Tensor& gated,
                                                const Tensor& grad_weight, const Tensor& grad_bias,
                                                const Tensor& grad_output, const Tensor& output, const Tensor& input,
                                                const Tensor& mean, const Tensor& invstd, const Tensor& weight,
                                                const Tensor& /*bias*/, const ChannelLayout& layout) {
  auto it = TensorIterator::pointwise("batch_norm_relu_backward", gated, {&grad_output, &output}, Promotion::Common);
  threshold_backward(it.device_type(), it, 0);
  const Tensor g = it.take_output();
  batch_norm_backward(input.device().type, grad_input, grad_weight, grad_bias, g, input, mean, invstd, weight,
                      /*training=*/true, layout);
}

void register_batch_norm_ops(Registry& r) {
  r.native(ops::native_batch_norm, native::native_batch_norm);
  r.native(ops::native_batch_norm_backward, native::native_batch_norm_backward);
  r.native(ops::native_batch_norm_relu, native::native_batch_norm_relu);
  r.native(ops::native_batch_norm_relu_backward, native::native_batch_norm_relu_backward);
  r.composite(ops::batch_norm, native::batch_norm);
  r.composite(ops::batch_norm_relu, native::batch_norm_relu);
  r.composite(ops::instance_norm, native::instance_norm);
}

}  // namespace rush
