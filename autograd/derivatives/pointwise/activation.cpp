// Derivatives of activation functions. Each is one operator, NAME_backward, which has a derivative of its own here.
#include "core/ops/pointwise/activation.h"

#include "autograd/derivatives/pointwise/pointwise.h"
#include "autograd/derivatives/register.h"
#include "core/ops/basic.h"
#include "core/ops/pointwise/power.h"

namespace rush {

namespace {

// Of backward(g, x, parameters...) where the function is piecewise linear: nothing flows to x.
template <auto& backward, class... Parameters>
struct LinearBackwardBackward : Node {
  Saved self;
  std::tuple<Parameters...> parameters;
  RUSH_SAVED(self)
  auto saved_arguments() { return std::tuple_cat(std::tie(std::ignore, self), saved_each(parameters)); }
  Tensors apply(const Tensors& g) override {
    return {std::apply([&](const auto&... p) { return backward(g[0], self.get(), p...); }, parameters),
            needs(1) ? zeros_like(g[0]) : Tensor()};
  }
};

// ---- relu, threshold ----
RUSH_BY_RESULT(ReluBackward) { return ops::threshold_backward(g, y, 0); }  // 1 where y > 0

struct ThresholdBackward final : Node {  // 1 where x > threshold
  Saved self;
  Scalar threshold;
  RUSH_SAVED(self)
  auto saved_arguments() { return std::tie(self, threshold, std::ignore); }
  Tensors apply(const Tensors& g) override { return {ops::threshold_backward(g[0], self.get(), threshold)}; }
};
struct ThresholdBackwardBackward final : LinearBackwardBackward<ops::threshold_backward, Scalar> {};
struct LeakyReluBackward final : Node {
  Saved self;
  Scalar slope;
  RUSH_SAVED(self)
  auto saved_arguments() { return std::tie(self, slope); }
  Tensors apply(const Tensors& g) override { return {ops::leaky_relu_backward(g[0], self.get(), slope, false)}; }
};
struct LeakyReluBackwardBackward final : LinearBackwardBackward<ops::leaky_relu_backward, Scalar, bool> {};

// ---- gelu, silu, mish ----
struct GeluBackward final : ParametersBackward<ops::gelu_backward, std::string> {};
struct GeluBackwardBackward final : Node {
  Saved grad, self;
  std::string approximate;
  RUSH_SAVED(grad, self)
  auto saved_arguments() { return std::tie(grad, self, approximate); }
  Tensors apply(const Tensors& g) override {
    const Tensor x = self.get();
    return {needs(0) ? ops::gelu_backward(g[0], x, approximate) : Tensor(),
            needs(1) ? g[0] * grad.get() * (approximate == "tanh" ? curvature_of_tanh(x) : curvature(x)) : Tensor()};
  }

 private:
  // (Phi + x phi)' = (2 - x^2) phi, phi = exp(-x^2/2) / sqrt(2 pi).
  static Tensor curvature(const Tensor& x) {
    const Tensor square = x * x;
    return (2 - square) * (square * -0.5).exp() * 0.39894228040143267794;
  }
  // With t = tanh u and s = 1 - t^2: ((1 + t)/2 + x/2 s u')' = s u' + x/2 s (u'' - 2 t u'^2).
  static Tensor curvature_of_tanh(const Tensor& x) {
    constexpr double k = 0.79788456080286535588, c = 0.044715;
    const Tensor square = x * x;
    const Tensor t = (x * (square * c + 1) * k).tanh(), s = 1 - t * t;
    const Tensor slope = (square * (3 * c) + 1) * k;
    return s * slope + x * 0.5 * s * (x * (6 * c * k) - 2 * t * slope * slope);
  }
};
RUSH_BY_INPUT(SiluBackward) { return ops::silu_backward(g, x); }
struct SiluBackwardBackward final : FromInputs {  // (s (1 + x (1 - s)))' = s (1 - s) (2 + x (1 - 2 s)), s = sigmoid x
  Tensors apply(const Tensors& g) override {
    const Tensor x = other.get();
    Tensors grads(2);
    if (needs(0)) grads[0] = ops::silu_backward(g[0], conj_of(x));
    if (needs(1)) {
      const Tensor s = x.sigmoid();
      grads[1] = self.get() * conj_of(g[0] * s * (1 - s) * (2 + x * (1 - 2 * s)));
    }
    return grads;
  }
};
RUSH_BY_INPUT(MishBackward) { return ops::mish_backward(g, x); }
// With t = tanh(softplus x), s = sigmoid x, w = s (1 - t^2) = t': (t + x w)' = 2 w + x w', w' = w (1 - s - 2 t s).
struct MishBackwardBackward final : FromInputs {
  Tensors apply(const Tensors& g) override {
    const Tensor x = other.get();
    Tensors grads(2);
    if (needs(0)) grads[0] = ops::mish_backward(g[0], x);
    if (needs(1)) {
      const Tensor s = x.sigmoid(), t = softplus(x).tanh(), w = s * (1 - t * t);
      grads[1] = g[0] * self.get() * w * (2 + x * (1 - s - 2 * t * s));
    }
    return grads;
  }
};

// ---- elu, softplus, log_sigmoid ----
struct EluBackward final : Node {
  Saved self;
  Scalar alpha, scale, input_scale;
  RUSH_SAVED(self)
  auto saved_arguments() { return std::tie(self, alpha, scale, input_scale); }
  Tensors apply(const Tensors& g) override {
    return {ops::elu_backward(g[0], alpha, scale, input_scale, false, self.get())};
  }
};
// Below 0 the derivative is k alpha scale e^(k x), k = input_scale, or k (y + alpha scale) of the result y: it changes
// with x by k times itself, with y by k.
struct EluBackwardBackward final : Node {
  Saved grad, self;
  Scalar alpha, scale, input_scale;
  bool is_result = false;
  RUSH_SAVED(grad, self)
  auto saved_arguments() { return std::tie(grad, alpha, scale, input_scale, is_result, self); }
  Tensors apply(const Tensors& g) override {
    const Tensor x = self.get();
    const auto slope = [&](const Tensor& factor) {
      return ops::elu_backward(factor, alpha, scale, input_scale, is_result, x);
    };
    Tensors grads(2);
    if (needs(0)) grads[0] = slope(g[0]);
    if (needs(1)) {
      const Tensor both = g[0] * grad.get() * input_scale;
      grads[1] = where(x < 0, is_result ? both : slope(both), 0);
    }
    return grads;
  }
};
struct SoftplusBackward final : ParametersBackward<ops::softplus_backward, Scalar, Scalar> {};
struct SoftplusBackwardBackward final : Node {  // beta s (1 - s), s = sigmoid(beta x), and 0 above the threshold
  Saved grad, self;
  Scalar beta, threshold;
  RUSH_SAVED(grad, self)
  auto saved_arguments() { return std::tie(grad, self, beta, threshold); }
  Tensors apply(const Tensors& g) override {
    const Tensor x = self.get();
    Tensors grads(2);
    if (needs(0)) grads[0] = ops::softplus_backward(g[0], x, beta, threshold);
    if (needs(1)) {
      const Tensor z = x * beta;
      grads[1] = where(z > threshold, 0, g[0] * grad.get() * sigmoid_backward(beta * ones_like(x), z.sigmoid()));
    }
    return grads;
  }
};
struct LogSigmoidBackward final : FromInput {
  static constexpr size_t kDifferentiable = 1;
  Tensor buffer;
  void save_output(const Tensor&, const Tensor& kept) { buffer = kept; }
  Tensors apply(const Tensors& g) override { return {ops::log_sigmoid_backward(g[0], self.get(), buffer)}; }
};
struct LogSigmoidBackwardBackward final : Node {  // sigmoid(-x)' = -sigmoid(x) sigmoid(-x)
  Saved grad, self, buffer;
  RUSH_SAVED(grad, self, buffer)
  auto saved_arguments() { return std::tie(grad, self, buffer); }
  Tensors apply(const Tensors& g) override {
    const Tensor x = self.get();
    return {needs(0) ? ops::log_sigmoid_backward(g[0], x, buffer.get()) : Tensor(),
            needs(1) ? -sigmoid_backward(g[0] * grad.get(), x.sigmoid()) : Tensor(), Tensor()};
  }
};

// ---- the hard ones ----
struct HardtanhBackward final : ParametersBackward<ops::hardtanh_backward, Scalar, Scalar> {};
struct HardtanhBackwardBackward final : LinearBackwardBackward<ops::hardtanh_backward, Scalar, Scalar> {};
RUSH_BY_INPUT(HardsigmoidBackward) { return ops::hardsigmoid_backward(g, x); }
struct HardsigmoidBackwardBackward final : LinearBackwardBackward<ops::hardsigmoid_backward> {};
RUSH_BY_INPUT(HardswishBackward) { return ops::hardswish_backward(g, x); }
struct HardswishBackwardBackward final : FromInputs {  // (x / 3 + 1/2)' = 1/3 between -3 and 3
  Tensors apply(const Tensors& g) override {
    const Tensor x = other.get();
    return {needs(0) ? ops::hardswish_backward(g[0], x) : Tensor(),
            needs(1) ? where((x > -3) & (x < 3), g[0] * self.get() / 3, 0) : Tensor()};
  }
};
struct HardshrinkBackward final : ParametersBackward<ops::hardshrink_backward, Scalar> {};
struct SoftshrinkBackward final : ParametersBackward<ops::softshrink_backward, Scalar> {};
// Of both, which have one backward.
struct ShrinkBackwardBackward final : LinearBackwardBackward<ops::hardshrink_backward, Scalar> {};

// ---- glu, prelu ----
struct GluBackward final : ParametersBackward<ops::glu_backward, int64_t> {};
// Of (g s, g a s'), s = sigmoid(b), s' = s (1 - s), s'' = s' (1 - 2 s), against the gradients (p, q) of the halves:
// for g: p s + q a s';  for a: q g s';  for b: p g s' + q g a s''.
struct GluBackwardBackward final : Node {
  Saved grad, self;
  int64_t dim = 0;
  RUSH_SAVED(grad, self)
  auto saved_arguments() { return std::tie(grad, self, dim); }
  Tensors apply(const Tensors& g) override {
    const Tensor x = self.get();
    const int64_t half = x.size(dim) / 2;
    const Tensor p = g[0].narrow(dim, 0, half), q = g[0].narrow(dim, half, half);
    const Tensor a = x.narrow(dim, 0, half), s = x.narrow(dim, half, half).sigmoid(), slope = s * (1 - s);
    Tensors grads(2);
    if (needs(0)) grads[0] = p * s + q * a * slope;
    if (needs(1)) {
      const Tensor scaled = grad.get() * slope;
      grads[1] = cat({q * scaled, scaled * (p + q * a * (1 - 2 * s))}, dim);
    }
    return grads;
  }
};
struct PreluKernelBackward final : FromInputs {
  Tensors apply(const Tensors& g) override {
    auto [of_self, of_weight] = ops::_prelu_kernel_backward(g[0], self.get(), other.get());
    return {of_self, of_weight};
  }
};
// Of (g or w g, 0 or x g), the second of each pair below 0, against the gradients (p, q).
struct PreluKernelBackwardBackward final : Node {
  Saved grad, self, weight;
  RUSH_SAVED(grad, self, weight)
  auto saved_arguments() { return std::tie(grad, self, weight); }
  Tensors apply(const Tensors& g) override {
    const Tensor x = self.get(), upper = grad.get(), above = x > 0;
    const Tensor p = g[0].defined() ? g[0] : zeros_like(x), q = g[1].defined() ? g[1] : zeros_like(x);
    Tensors grads(3);
    if (needs(0)) grads[0] = where(above, p, p * weight.get() + q * x);
    if (needs(1)) grads[1] = where(above, 0, q * upper);
    if (needs(2)) grads[2] = where(above, 0, p * upper);
    return grads;
  }
};

}  // namespace

void register_activation_derivatives(Registry& r) {
  derive_all<ReluBackward, ops::relu, ops::relu_>(r);
  derive_all<ThresholdBackward, ops::threshold, ops::threshold_>(r);
  derive_all<LeakyReluBackward, ops::leaky_relu, ops::leaky_relu_>(r);
  derive_all<GeluBackward, ops::gelu, ops::gelu_>(r);
  derive_all<SiluBackward, ops::silu, ops::silu_>(r);
  derive_all<MishBackward, ops::mish, ops::mish_>(r);
  derive_all<EluBackward, ops::elu, ops::elu_>(r);
  derive_all<HardtanhBackward, ops::hardtanh, ops::hardtanh_>(r);
  derive_all<HardsigmoidBackward, ops::hardsigmoid, ops::hardsigmoid_>(r);
  derive_all<HardswishBackward, ops::hardswish, ops::hardswish_>(r);
  derive<ops::softplus, SoftplusBackward>(r);
  derive<ops::log_sigmoid_forward, LogSigmoidBackward>(r);
  derive<ops::hardshrink, HardshrinkBackward>(r);
  derive<ops::softshrink, SoftshrinkBackward>(r);
  derive<ops::glu, GluBackward>(r);
  derive<ops::_prelu_kernel, PreluKernelBackward>(r);
  derive<ops::threshold_backward, ThresholdBackwardBackward>(r);
  derive<ops::leaky_relu_backward, LeakyReluBackwardBackward>(r);
  derive<ops::gelu_backward, GeluBackwardBackward>(r);
  derive<ops::silu_backward, SiluBackwardBackward>(r);
  derive<ops::mish_backward, MishBackwardBackward>(r);
  derive<ops::elu_backward, EluBackwardBackward>(r);
  derive<ops::softplus_backward, SoftplusBackwardBackward>(r);
  derive<ops::log_sigmoid_backward, LogSigmoidBackwardBackward>(r);
  derive<ops::hardtanh_backward, HardtanhBackwardBackward>(r);
  derive<ops::hardsigmoid_backward, HardsigmoidBackwardBackward>(r);
  derive<ops::hardswish_backward, HardswishBackwardBackward>(r);
  derive_all<ShrinkBackwardBackward, ops::hardshrink_backward, ops::softshrink_backward>(r);
  derive<ops::glu_backward, GluBackwardBackward>(r);
  derive<ops::_prelu_kernel_backward, PreluKernelBackwardBackward>(r);
}

}  // namespace rush
