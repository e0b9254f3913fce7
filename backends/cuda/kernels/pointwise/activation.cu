#include "core/ops/pointwise/activation.h"

#include "backends/cuda/kernels/launch.h"
#include "backends/cuda/kernels/pointwise/register_pointwise.h"
#include "backends/functors/activation.h"

namespace rush::cuda {

void register_activation() {
  using Types = RealFloatTypes;
  kernels::relu.set(kCUDA, map<functors::Relu, RealTypes>);
  kernels::threshold.set(kCUDA, map_with<functors::Threshold, RealTypes, Scalar, Scalar>);
  kernels::gelu.set(kCUDA, map<functors::Gelu, Types>);
  kernels::gelu_tanh.set(kCUDA, map<functors::GeluTanh, Types>);
  kernels::silu.set(kCUDA, map<functors::Silu, FloatTypes>);
  kernels::mish.set(kCUDA, map<functors::Mish, Types>);
  kernels::leaky_relu.set(kCUDA, map_with<functors::LeakyRelu, Types, Scalar>);
  kernels::elu.set(kCUDA, map_with<functors::Elu, Types, Scalar, Scalar, Scalar>);
  kernels::softplus.set(kCUDA, map_with<functors::Softplus, Types, Scalar, Scalar>);
  kernels::log_sigmoid.set(kCUDA, map<functors::LogSigmoid, Types>);
  kernels::hardswish.set(kCUDA, map<functors::Hardswish, Types>);
  kernels::hardsigmoid.set(kCUDA, map<functors::Hardsigmoid, Types>);
  kernels::hardshrink.set(kCUDA, map_with<functors::Hardshrink, Types, Scalar>);
  kernels::softshrink.set(kCUDA, map_with<functors::Softshrink, Types, Scalar>);
  kernels::prelu.set(kCUDA, map<functors::Prelu, Types>);
  kernels::glu.set(kCUDA, map<functors::Glu, Types>);
}

}  // namespace rush::cuda
