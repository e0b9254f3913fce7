// Trigonometric and hyperbolic functions and their inverses.
#include "backends/functors/unary.h"

#include "backends/cuda/kernels/launch.h"
#include "backends/cuda/kernels/pointwise/register_pointwise.h"
#include "core/ops/pointwise/unary.h"

namespace rush::cuda {

void register_trigonometry() {
  kernels::sin.set(kCUDA, map_slow<functors::Sin, FloatTypes>);
  kernels::cos.set(kCUDA, map_slow<functors::Cos, FloatTypes>);
  kernels::tan.set(kCUDA, map_slow<functors::Tan, FloatTypes>);
  kernels::asin.set(kCUDA, map_slow<functors::Asin, FloatTypes>);
  kernels::acos.set(kCUDA, map_slow<functors::Acos, FloatTypes>);
  kernels::atan.set(kCUDA, map_slow<functors::Atan, FloatTypes>);
  kernels::sinh.set(kCUDA, map_slow<functors::Sinh, FloatTypes>);
  kernels::cosh.set(kCUDA, map_slow<functors::Cosh, FloatTypes>);
  kernels::asinh.set(kCUDA, map_slow<functors::Asinh, FloatTypes>);
  kernels::acosh.set(kCUDA, map_slow<functors::Acosh, FloatTypes>);
  kernels::atanh.set(kCUDA, map_slow<functors::Atanh, FloatTypes>);
  kernels::sinc.set(kCUDA, map_slow<functors::Sinc, FloatTypes>);
}

}  // namespace rush::cuda
