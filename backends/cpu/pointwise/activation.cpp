#include "core/ops/pointwise/activation.h"

#include "backends/cpu/pointwise/vec_math.h"
#include "backends/cpu/register.h"
#include "backends/functors/activation.h"

namespace rush::cpu {

namespace {

// Activations made of comparisons and products, which the compiler vectorises by itself.
void register_piecewise() {
  using Types = RealFloatTypes;
  kernels::relu.set(kCPU, map<functors::Relu, RealTypes>);
  kernels::threshold.set(kCPU, map_with<functors::Threshold, RealTypes, Scalar, Scalar>);
  kernels::threshold_backward.set(kCPU, map_with<functors::ThresholdBackward, RealTypes, Scalar>);
  kernels::elu_backward_from_result.set(kCPU, map_with<functors::EluBackwardFromResult, Types, Scalar, Scalar, Scalar>);
  kernels::hardtanh_backward.set(kCPU, map_with<functors::HardtanhBackward, Types, Scalar, Scalar>);
  kernels::hardswish.set(kCPU, map<functors::Hardswish, Types>);
  kernels::hardswish_backward.set(kCPU, map<functors::HardswishBackward, Types>);
  kernels::hardsigmoid.set(kCPU, map<functors::Hardsigmoid, Types>);
  kernels::hardsigmoid_backward.set(kCPU, map<functors::HardsigmoidBackward, Types>);
  kernels::hardshrink.set(kCPU, map_with<functors::Hardshrink, Types, Scalar>);
  kernels::softshrink.set(kCPU, map_with<functors::Softshrink, Types, Scalar>);
  kernels::shrink_backward.set(kCPU, map_with<functors::ShrinkBackward, Types, Scalar>);
  kernels::prelu.set(kCPU, map<functors::Prelu, Types>);
  kernels::prelu_backward_self.set(kCPU, map<functors::PreluBackwardSelf, Types>);
  kernels::prelu_backward_weight.set(kCPU, map<functors::PreluBackwardWeight, Types>);
}

}  // namespace

void register_activation() {
  using Types = RealFloatTypes;
  register_piecewise();
  kernels::gelu.set(kCPU, map_vec<functors::Gelu, Types>);
  kernels::gelu_backward.set(kCPU, map_vec<functors::GeluBackward, Types>);
  kernels::gelu_tanh.set(kCPU, map_vec<functors::GeluTanh, Types>);
  kernels::gelu_tanh_backward.set(kCPU, map_vec<functors::GeluTanhBackward, Types>);
  kernels::silu.set(kCPU, map_vec<functors::Silu, FloatTypes>);
  kernels::silu_backward.set(kCPU, map_vec<functors::SiluBackward, FloatTypes>);
  kernels::mish.set(kCPU, map_vec<functors::Mish, Types>);
  kernels::mish_backward.set(kCPU, map_vec<functors::MishBackward, Types>);
  kernels::leaky_relu_backward.set(kCPU, map_vec_with<functors::LeakyReluBackward, Types, Scalar>);
  kernels::leaky_relu.set(kCPU, map_vec_with<functors::LeakyRelu, Types, Scalar>);
  kernels::elu.set(kCPU, map_vec_with<functors::Elu, Types, Scalar, Scalar, Scalar>);
  kernels::elu_backward.set(kCPU, map_vec_with<functors::EluBackward, Types, Scalar, Scalar, Scalar>);
  kernels::softplus.set(kCPU, map_vec_with<functors::Softplus, Types, Scalar, Scalar>);
  kernels::softplus_backward.set(kCPU, map_vec_with<functors::SoftplusBackward, Types, Scalar, Scalar>);
  kernels::log_sigmoid.set(kCPU, map_vec<functors::LogSigmoid, Types>);
  kernels::log_sigmoid_backward.set(kCPU, map_vec<functors::LogSigmoidBackward, Types>);
  kernels::glu.set(kCPU, map_vec<functors::Glu, Types>);
  kernels::glu_backward_a.set(kCPU, map_vec<functors::GluBackwardA, Types>);
  kernels::glu_backward_b.set(kCPU, map_vec<functors::GluBackwardB, Types>);
}

}  // namespace rush::cpu
