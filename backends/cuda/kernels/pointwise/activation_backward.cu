#include "backends/functors/activation.h"

#include "backends/cuda/kernels/launch.h"
#include "backends/cuda/kernels/pointwise/register_pointwise.h"
#include "core/ops/pointwise/activation.h"

namespace rush::cuda {

void register_activation_backward() {
  using Types = RealFloatTypes;
  kernels::threshold_backward.set(kCUDA, map_with<functors::ThresholdBackward, RealTypes, Scalar>);
  kernels::gelu_backward.set(kCUDA, map<functors::GeluBackward, Types>);
  kernels::gelu_tanh_backward.set(kCUDA, map<functors::GeluTanhBackward, Types>);
  kernels::silu_backward.set(kCUDA, map<functors::SiluBackward, FloatTypes>);
  kernels::mish_backward.set(kCUDA, map<functors::MishBackward, Types>);
  kernels::leaky_relu_backward.set(kCUDA, map_with<functors::LeakyReluBackward, Types, Scalar>);
  kernels::elu_backward.set(kCUDA, map_with<functors::EluBackward, Types, Scalar, Scalar, Scalar>);
  kernels::elu_backward_from_result.set(kCUDA,
                                        map_with<functors::EluBackwardFromResult, Types, Scalar, Scalar, Scalar>);
  kernels::softplus_backward.set(kCUDA, map_with<functors::SoftplusBackward, Types, Scalar, Scalar>);
  kernels::log_sigmoid_backward.set(kCUDA, map<functors::LogSigmoidBackward, Types>);
  kernels::hardtanh_backward.set(kCUDA, map_with<functors::HardtanhBackward, Types, Scalar, Scalar>);
  kernels::hardswish_backward.set(kCUDA, map<functors::HardswishBackward, Types>);
  kernels::hardsigmoid_backward.set(kCUDA, map<functors::HardsigmoidBackward, Types>);
  kernels::shrink_backward.set(kCUDA, map_with<functors::ShrinkBackward, Types, Scalar>);
  kernels::prelu_backward_self.set(kCUDA, map<functors::PreluBackwardSelf, Types>);
  kernels::prelu_backward_weight.set(kCUDA, map<functors::PreluBackwardWeight, Types>);
  kernels::glu_backward_a.set(kCUDA, map<functors::GluBackwardA, Types>);
  kernels::glu_backward_b.set(kCUDA, map<functors::GluBackwardB, Types>);
}

}  // namespace rush::cuda
