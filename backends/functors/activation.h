// Activation functions and their derivatives; those take the output's gradient first. See Note [Functors on one number
// and on several].
#pragma once
#include <cmath>

#include "backends/functors/select.h"
#include "backends/functors/unary.h"
#ifndef __CUDACC_RTC__  // see Note [Functors compiled at run time]
#include "core/ops/pointwise/activation.h"
#endif

namespace rush::functors {

struct Relu {  // NaN stays
  template <class T>
  RUSH_HD T operator()(T x) const {
    return x < T(0) ? T(0) : x;
  }
};

template <class T>
struct Threshold {
  T threshold, value;
  RUSH_HD T operator()(T x) const { return x <= threshold ? value : x; }
};
template <class T>
struct ThresholdBackward {
  T threshold;
  RUSH_HD T operator()(T grad, T x) const { return x <= threshold ? T(0) : grad; }
};

// x Phi(x), Phi(x) = (1 + erf(x / sqrt 2)) / 2.
struct Gelu {
  template <class T>
  RUSH_HD T operator()(T x) const {
    using std::erf;
    return T(0.5) * x * (T(1) + erf(x * T(0.70710678118654752440)));
  }
};
struct GeluBackward {  // g (Phi(x) + x Phi'(x)), Phi'(x) = exp(-x^2 / 2) / sqrt(2 pi)
  template <class T>
  RUSH_HD T operator()(T grad, T x) const {
    using std::erf, std::exp;
    const T cumulative = T(0.5) * (T(1) + erf(x * T(0.70710678118654752440)));
    const T density = exp(T(-0.5) * x * x) * T(0.39894228040143267794);
    return grad * (cumulative + x * density);
  }
};

// x/2 (1 + tanh u), u = sqrt(2/pi) (x + 0.044715 x^3).
struct GeluTanh {
  template <class T>
  RUSH_HD static T inner(T x) {
    return T(0.79788456080286535588) * (x + T(0.044715) * x * x * x);
  }
  template <class T>
  RUSH_HD T operator()(T x) const {
    using std::tanh;
    return T(0.5) * x * (T(1) + tanh(inner(x)));
  }
};
struct GeluTanhBackward {  // g ((1 + t) / 2 + x/2 (1 - t^2) u'), t = tanh u
  template <class T>
  RUSH_HD T operator()(T grad, T x) const {
    using std::tanh;
    const T t = tanh(GeluTanh::inner(x));
    const T slope = T(0.79788456080286535588) * (T(1) + T(3 * 0.044715) * x * x);
    return grad * T(0.5) * (T(1) + t + x * (T(1) - t * t) * slope);
  }
};

struct Silu {
  template <class T>
  RUSH_HD T operator()(T x) const {
    return x * Sigmoid()(x);
  }
};
struct SiluBackward {  // g s (1 + x (1 - s)), s = sigmoid(x)
  template <class T>
  RUSH_HD T operator()(T grad, T x) const {
    const T s = Sigmoid()(x);
    return grad * Conj()(s * (T(1) + x * (T(1) - s)));
  }
};

// log(1 + e^z), and z itself where that makes no difference.
template <class T>
RUSH_HD T log_one_plus_exp(T z) {
  using std::exp, std::log1p;
  return select(z > T(20), z, log1p(exp(z)));
}

struct Mish {
  template <class T>
  RUSH_HD T operator()(T x) const {
    using std::tanh;
    return x * tanh(log_one_plus_exp(x));
  }
};
struct MishBackward {  // g (t + x s (1 - t^2)), t = tanh(softplus x), s = sigmoid x
  template <class T>
  RUSH_HD T operator()(T grad, T x) const {
    using std::tanh;
    const T t = tanh(log_one_plus_exp(x));
    return grad * (t + x * Sigmoid()(x) * (T(1) - t * t));
  }
};

template <class T>
struct LeakyRelu {
  T slope;
  template <class V>
  RUSH_HD V operator()(V x) const {
    return select(x > V(0), x, x * V(slope));
  }
};
template <class T>
struct LeakyReluBackward {
  T slope;
  template <class V>
  RUSH_HD V operator()(V grad, V x) const {
    return select(x > V(0), grad, grad * V(slope));
  }
};

template <class T>
struct Elu {
  T alpha, scale, input_scale;
  template <class V>
  RUSH_HD V operator()(V x) const {
    using std::expm1;
    return select(x > V(0), x * V(scale), expm1(x * V(input_scale)) * V(alpha * scale));
  }
};
template <class T>
struct EluBackward {
  T alpha, scale, input_scale;
  template <class V>
  RUSH_HD V operator()(V grad, V x) const {
    using std::exp;
    return grad * select(x > V(0), V(scale), exp(x * V(input_scale)) * V(input_scale * alpha * scale));
  }
};
template <class T>
struct EluBackwardFromResult {  // below 0 the result is alpha scale (exp(input_scale x) - 1)
  T alpha, scale, input_scale;
  RUSH_HD T operator()(T grad, T result) const {
    return grad * (result > T(0) ? scale : input_scale * (result + alpha * scale));
  }
};

template <class T>
struct Softplus {
  T beta, threshold;
  template <class V>
  RUSH_HD V operator()(V x) const {
    using std::exp, std::log1p;
    const V z = x * V(beta);
    return select(z > V(threshold), x, log1p(exp(z)) / V(beta));
  }
};
template <class T>
struct SoftplusBackward {
  T beta, threshold;
  template <class V>
  RUSH_HD V operator()(V grad, V x) const {
    const V z = x * V(beta);
    return select(z > V(threshold), grad, grad * Sigmoid()(z));
  }
};

struct LogSigmoid {  // min(x, 0) - log(1 + e^-|x|)
  template <class T>
  RUSH_HD T operator()(T x) const {
    using std::exp, std::log1p;
    const T low = select(x < T(0), x, -x);
    return select(x < T(0), x, T(0)) - log1p(exp(low));
  }
};
struct LogSigmoidBackward {  // g sigmoid(-x)
  template <class T>
  RUSH_HD T operator()(T grad, T x) const {
    return grad * Sigmoid()(-x);
  }
};

template <class T>
struct HardtanhBackward {
  T min, max;
  RUSH_HD T operator()(T grad, T x) const { return x <= min || x >= max ? T(0) : grad; }
};

struct Hardsigmoid {
  template <class T>
  RUSH_HD T operator()(T x) const {
    const T raised = x + T(3);
    const T held = raised < T(0) ? T(0) : raised;
    return (held > T(6) ? T(6) : held) * T(1. / 6);
  }
};
struct HardsigmoidBackward {
  template <class T>
  RUSH_HD T operator()(T grad, T x) const {
    return x > T(-3) && x < T(3) ? grad * T(1. / 6) : T(0);
  }
};
struct Hardswish {
  template <class T>
  RUSH_HD T operator()(T x) const {
    return x * Hardsigmoid()(x);
  }
};
struct HardswishBackward {
  template <class T>
  RUSH_HD T operator()(T grad, T x) const {
    return x <= T(-3) ? T(0) : x < T(3) ? grad * (x * T(1. / 3) + T(0.5)) : grad;
  }
};

template <class T>
struct Hardshrink {
  T lambd;
  RUSH_HD T operator()(T x) const { return x >= -lambd && x <= lambd ? T(0) : x; }
};
template <class T>
struct Softshrink {
  T lambd;
  RUSH_HD T operator()(T x) const { return x > lambd ? x - lambd : x < -lambd ? x + lambd : T(0) * x; }
};
template <class T>
struct ShrinkBackward {
  T lambd;
  RUSH_HD T operator()(T grad, T x) const { return x >= -lambd && x <= lambd ? T(0) : grad; }
};

struct Glu {
  template <class T>
  RUSH_HD T operator()(T a, T b) const {
    return a * Sigmoid()(b);
  }
};
struct GluBackwardA {  // g s, s = sigmoid(b)
  template <class T>
  RUSH_HD T operator()(T grad, T b) const {
    return grad * Sigmoid()(b);
  }
};
struct GluBackwardB {  // g a s (1 - s)
  template <class T>
  RUSH_HD T operator()(T grad, T a, T b) const {
    const T s = Sigmoid()(b);
    return grad * a * s * (T(1) - s);
  }
};

struct Prelu {
  template <class T>
  RUSH_HD T operator()(T x, T weight) const {
    return x > T(0) ? x : weight * x;
  }
};
struct PreluBackwardSelf {
  template <class T>
  RUSH_HD T operator()(T grad, T x, T weight) const {
    return x > T(0) ? grad : weight * grad;
  }
};
struct PreluBackwardWeight {
  template <class T>
  RUSH_HD T operator()(T grad, T x) const {
    return x > T(0) ? T(0) : x * grad;
  }
};

#ifndef __CUDACC_RTC__
using ActivationTable = Table<
    Row<kernels::relu, Relu, RealTypes>, Row<kernels::threshold, With<Threshold>, RealTypes>,
    Row<kernels::gelu, Gelu, RealFloatTypes, kVectors>, Row<kernels::gelu_tanh, GeluTanh, RealFloatTypes, kVectors>,
    Row<kernels::silu, Silu, FloatTypes, kVectors>, Row<kernels::mish, Mish, RealFloatTypes, kVectors>,
    Row<kernels::leaky_relu, With<LeakyRelu>, RealFloatTypes, kVectors>,
    Row<kernels::elu, With<Elu>, RealFloatTypes, kVectors>,
    Row<kernels::softplus, With<Softplus>, RealFloatTypes, kVectors>,
    Row<kernels::log_sigmoid, LogSigmoid, RealFloatTypes, kVectors>, Row<kernels::hardswish, Hardswish, RealFloatTypes>,
    Row<kernels::hardsigmoid, Hardsigmoid, RealFloatTypes>, Row<kernels::hardshrink, With<Hardshrink>, RealFloatTypes>,
    Row<kernels::softshrink, With<Softshrink>, RealFloatTypes>, Row<kernels::prelu, Prelu, RealFloatTypes>,
    Row<kernels::glu, Glu, RealFloatTypes, kVectors>>;

using ActivationBackwardTable =
    Table<Row<kernels::threshold_backward, With<ThresholdBackward>, RealTypes>,
          Row<kernels::gelu_backward, GeluBackward, RealFloatTypes, kVectors>,
          Row<kernels::gelu_tanh_backward, GeluTanhBackward, RealFloatTypes, kVectors>,
          Row<kernels::silu_backward, SiluBackward, FloatTypes, kVectors>,
          Row<kernels::mish_backward, MishBackward, RealFloatTypes, kVectors>,
          Row<kernels::leaky_relu_backward, With<LeakyReluBackward>, RealFloatTypes, kVectors>,
          Row<kernels::elu_backward, With<EluBackward>, RealFloatTypes, kVectors>,
          Row<kernels::elu_backward_from_result, With<EluBackwardFromResult>, RealFloatTypes>,
          Row<kernels::softplus_backward, With<SoftplusBackward>, RealFloatTypes, kVectors>,
          Row<kernels::log_sigmoid_backward, LogSigmoidBackward, RealFloatTypes, kVectors>,
          Row<kernels::hardtanh_backward, With<HardtanhBackward>, RealFloatTypes>,
          Row<kernels::hardswish_backward, HardswishBackward, RealFloatTypes>,
          Row<kernels::hardsigmoid_backward, HardsigmoidBackward, RealFloatTypes>,
          Row<kernels::shrink_backward, With<ShrinkBackward>, RealFloatTypes>,
          Row<kernels::prelu_backward_self, PreluBackwardSelf, RealFloatTypes>,
          Row<kernels::prelu_backward_weight, PreluBackwardWeight, RealFloatTypes>,
          Row<kernels::glu_backward_a, GluBackwardA, RealFloatTypes, kVectors>,
          Row<kernels::glu_backward_b, GluBackwardB, RealFloatTypes, kVectors>>;
#endif

}  // namespace rush::functors
