#include "core/ops/nn/norm.h"

#include "autograd/derivatives/register.h"
#include "autograd/grad_mode.h"
#include "core/ops/basic.h"
#include "core/ops/pointwise/activation.h"

namespace rush {

namespace {

// Note [Fused backward passes]
// A normalisation's backward pass is one kernel, several times faster than the dozen operators that the formula takes.
// The kernel's own derivative would be a formula of another dozen terms, so there is none: when the backward pass is
// itself recorded (create_graph), `apply` computes the gradient from public operators instead, starting from the input,
// so that the graph goes through the mean and the variance too.

// An input normalised over `dims`: x^ = (x - mean) r, r = 1 / sqrt(var + eps).
struct Normalized {
  Tensor hat, rstd;
  DimVector dims;
};

Tensor mean_over(const Tensor& x, IntArrayRef dims) {
  double count = 1;
  for (int64_t d : dims) count *= static_cast<double>(x.size(d));
  return x.sum(dims, true) / count;
}

Normalized normalize(const Tensor& x, DimVector dims, double eps, bool centred = true) {
  const Tensor deviation = centred ? x - mean_over(x, dims) : x;
  const Tensor rstd = (mean_over(deviation * deviation, dims) + eps).rsqrt();
  return {deviation * rstd, rstd, dims};
}

// The gradient of x, given that of x^: r (g - mean(g) - x^ mean(g x^)); without the mean of g where x was not centred.
Tensor normalize_backward(const Tensor& g, const Normalized& n, bool centred = true) {
  const Tensor along = n.hat * mean_over(g * n.hat, n.dims);
  return (centred ? g - mean_over(g, n.dims) - along : g - along) * n.rstd;
}

DimVector last_dims(int64_t dims, size_t count) {
  DimVector last;
  for (int64_t d = dims - static_cast<int64_t>(count); d < dims; ++d) last.push_back(d);
  return last;
}

DimVector all_but_channels(int64_t dims) {
  DimVector others{0};
  for (int64_t d = 2; d < dims; ++d) others.push_back(d);
  return others;
}

// One number a channel as (1, C, 1, ...).
Tensor as_channels(const Tensor& t, int64_t dims) {
  DimVector sizes(static_cast<size_t>(dims), 1);
  sizes[1] = t.numel();
  return t.reshape(sizes);
}

void check_no_statistics_gradient(const Tensors& g, const char* op) {
  for (size_t i = 1; i < g.size(); ++i) {
    RUSH_CHECK_NOT_IMPLEMENTED(!g[i].defined(), op, ": the mean and rstd that it returns cannot be differentiated");
  }
}

struct NativeLayerNormBackward final : Node {
  static constexpr size_t kDifferentiable = 1;
  Saved input, weight, bias, mean, rstd;
  DimVector shape;
  double eps = 0;
  RUSH_SAVED(input, weight, bias, mean, rstd)
  auto saved_arguments() { return std::tie(input, shape, weight, bias, eps); }
  auto saved_results() { return std::tie(std::ignore, mean, rstd); }
  Tensors apply(const Tensors& g) override {
    const Tensor x = input.get(), w = weight.get();
    if (!GradMode::is_enabled()) {
      const auto [dx, dw, db] = ops::native_layer_norm_backward(g[0], x, shape, mean.get(), rstd.get(), w, bias.get(),
                                                                {needs(0), needs(1), needs(2)});
      return {dx, dw, db};
    }
    const Normalized n = normalize(x, last_dims(x.dim(), shape.size()), eps);
    return {normalize_backward(w.defined() ? g[0] * w : g[0], n), g[0] * n.hat, g[0]};
  }
};

struct FusedRmsNormBackward final : Node {
  Saved input, weight, rstd;
  DimVector shape;
  std::optional<double> given_eps;
  RUSH_SAVED(input, weight, rstd)
  auto saved_arguments() { return std::tie(input, shape, weight, given_eps); }
  auto saved_results() { return std::tie(std::ignore, rstd); }
  Tensors apply(const Tensors& g) override {
    check_no_statistics_gradient(g, "_fused_rms_norm");
    const Tensor x = input.get(), w = weight.get();
    if (!GradMode::is_enabled()) {
      const auto [dx, dw] = ops::_fused_rms_norm_backward(g[0], x, shape, rstd.get(), w, {needs(0), needs(1)});
      return {dx, dw};
    }
    const double eps = detail::rms_norm_eps(x.scalar_type(), given_eps);
    const Normalized n = normalize(x, last_dims(x.dim(), shape.size()), eps, false);
    return {normalize_backward(w.defined() ? g[0] * w : g[0], n, false), g[0] * n.hat};
  }
};

struct NativeGroupNormBackward final : Node {
  Saved input, weight, mean, rstd;
  int64_t N = 0, C = 0, HxW = 0, groups = 1;
  double eps = 0;
  RUSH_SAVED(input, weight, mean, rstd)
  auto saved_arguments() { return std::tie(input, weight, std::ignore, N, C, HxW, groups, eps); }
  auto saved_results() { return std::tie(std::ignore, mean, rstd); }
  Tensors apply(const Tensors& g) override {
    check_no_statistics_gradient(g, "native_group_norm");
    const Tensor x = input.get(), w = weight.get();
    if (!GradMode::is_enabled()) {
      const auto [dx, dw, db] = ops::native_group_norm_backward(g[0], x, mean.get(), rstd.get(), w, N, C, HxW, groups,
                                                                {needs(0), needs(1), needs(2)});
      return {dx, dw, db};
    }
    // (N, C, HxW) -> (N, groups, C / groups * HxW)
    const DimVector grouped{N, groups, groups > 0 ? C / groups * HxW : 0};
    const Tensor dy = g[0].reshape({N, C, HxW});
    const Normalized n = normalize(x.reshape(grouped), {2}, eps);
    const Tensor scaled = w.defined() ? dy * w.reshape({1, C, 1}) : dy;
    const Tensor dx = normalize_backward(scaled.reshape(grouped), n).reshape(x.sizes());
    const DimVector others{0, 2};
    return {dx, (dy * n.hat.reshape(dy.sizes())).sum(others), dy.sum(others)};
  }
};

struct NativeBatchNormBackward final : Node {
  static constexpr size_t kDifferentiable = 1;
  static constexpr std::array<size_t, 2> kConstants = {3, 4};
  Saved input, weight, running_mean, running_var, mean, invstd;
  bool training = false;
  double eps = 0;
  RUSH_SAVED(input, weight, running_mean, running_var, mean, invstd)
  void save(const Tensor& x, const OptionalTensor& w, const OptionalTensor&, const OptionalTensor& rm,
            const OptionalTensor& rv, bool train, double, double e) {
    input = x;
    weight = w;
    training = train;
    eps = e;
    if (train) return;  // the running statistics are written, but play no part
    running_mean = rm;
    running_var = rv;
  }
  auto saved_results() { return std::tie(std::ignore, mean, invstd); }
  Tensors apply(const Tensors& g) override {
    const Tensor x = input.get(), w = weight.get();
    if (!GradMode::is_enabled()) {
      const auto [dx, dw, db] =
          ops::native_batch_norm_backward(g[0], x, w, running_mean.get(), running_var.get(), mean.get(), invstd.get(),
                                          training, eps, {needs(0), needs(1), needs(2)});
      return {dx, dw, db};
    }
    const DimVector others = all_but_channels(x.dim());
    const Normalized n = training ? normalize(x, others, eps) : by_running_statistics(x, others);
    const Tensor scaled = w.defined() ? g[0] * as_channels(w, x.dim()) : g[0];
    return {training ? normalize_backward(scaled, n) : scaled * n.rstd, (g[0] * n.hat).sum(others), g[0].sum(others)};
  }

 private:
  Normalized by_running_statistics(const Tensor& x, const DimVector& others) const {
    const Tensor rstd = (as_channels(running_var.get(), x.dim()) + eps).rsqrt();
    return {(x - as_channels(running_mean.get(), x.dim())) * rstd, rstd, others};
  }
};

// relu(batch norm + residual) in training.
struct NativeBatchNormReluBackward final : Node {
  static constexpr size_t kDifferentiable = 1;
  static constexpr std::array<size_t, 2> kConstants = {4, 5};
  Saved input, weight, bias, output, mean, invstd;
  bool has_residual = false;
  double eps = 0;
  RUSH_SAVED(input, weight, bias, output, mean, invstd)
  void save(const Tensor& x, const OptionalTensor& residual, const OptionalTensor& w, const OptionalTensor& b,
            const OptionalTensor&, const OptionalTensor&, double, double e) {
    input = x;
    weight = w;
    bias = b;
    has_residual = given(residual);
    eps = e;
  }
  auto saved_results() { return std::tie(output, mean, invstd); }
  Tensors apply(const Tensors& g) override {
    const Tensor x = input.get(), w = weight.get();
    if (!GradMode::is_enabled()) {
      const auto [dx, dresidual, dw, db] =
          ops::native_batch_norm_relu_backward(g[0], output.get(), x, has_residual, w, bias.get(), mean.get(),
                                               invstd.get(), {needs(0), needs(1), needs(2), needs(3)}, std::nullopt);
      return {dx, dresidual, dw, db};
    }
    const Tensor gated = ops::threshold_backward(g[0], output.get(), 0);
    const DimVector others = all_but_channels(x.dim());
    const Normalized n = normalize(x, others, eps);
    const Tensor scaled = w.defined() ? gated * as_channels(w, x.dim()) : gated;
    return {normalize_backward(scaled, n), gated, (gated * n.hat).sum(others), gated.sum(others)};
  }
};

}  // namespace

void register_norm_derivatives(Registry& r) {
  derive<ops::native_layer_norm, NativeLayerNormBackward>(r);
  derive<ops::_fused_rms_norm, FusedRmsNormBackward>(r);
  derive<ops::native_group_norm, NativeGroupNormBackward>(r);
  derive<ops::native_batch_norm, NativeBatchNormBackward>(r);
  derive<ops::native_batch_norm_relu, NativeBatchNormReluBackward>(r);
}

}  // namespace rush
