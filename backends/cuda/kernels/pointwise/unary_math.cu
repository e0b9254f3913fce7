// Roots, exponentials and logarithms, and the activations made of them: what networks use.
#include "backends/functors/unary.h"

#include "backends/cuda/kernels/launch.h"
#include "backends/cuda/kernels/pointwise/register_pointwise.h"
#include "core/ops/pointwise/unary.h"

namespace rush::cuda {

void register_unary_math() {
  kernels::reciprocal.set(kCUDA, map<functors::Reciprocal, FloatTypes>);
  kernels::sqrt.set(kCUDA, map<functors::Sqrt, FloatTypes>);
  kernels::rsqrt.set(kCUDA, map<functors::Rsqrt, FloatTypes>);
  kernels::exp.set(kCUDA, map<functors::Exp, FloatTypes>);
  kernels::log.set(kCUDA, map<functors::Log, FloatTypes>);
  kernels::log1p.set(kCUDA, map<functors::Log1p, FloatTypes>);
  kernels::tanh.set(kCUDA, map<functors::Tanh, FloatTypes>);
  kernels::tanh_backward.set(kCUDA, map<functors::TanhBackward, FloatTypes>);
  kernels::sigmoid.set(kCUDA, map<functors::Sigmoid, FloatTypes>);
  kernels::sigmoid_backward.set(kCUDA, map<functors::SigmoidBackward, FloatTypes>);
  kernels::erf.set(kCUDA, map<functors::Erf, RealFloatTypes>);
  kernels::exp2.set(kCUDA, map_slow<functors::Exp2, FloatTypes>);
  kernels::expm1.set(kCUDA, map_slow<functors::Expm1, FloatTypes>);
  kernels::log2.set(kCUDA, map_slow<functors::Log2, FloatTypes>);
  kernels::log10.set(kCUDA, map_slow<functors::Log10, FloatTypes>);
}

}  // namespace rush::cuda
