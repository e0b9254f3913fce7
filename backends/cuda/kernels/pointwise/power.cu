#include "core/ops/pointwise/power.h"

#include "backends/cuda/kernels/launch.h"
#include "backends/cuda/kernels/pointwise/register_pointwise.h"
#include "backends/functors/binary.h"
#include "backends/functors/unary.h"

namespace rush::cuda {

namespace {

struct PowScalarLoop {
  template <class T>
  static void run(TensorIterator& it, const Scalar& exponent) {
    using Math = opmath_t<T>;
    if (exponent.equal(2)) return elementwise<T, T>(it, functors::Square{});
    if (exponent.equal(3)) return elementwise<T, T>(it, functors::Cube{});
    if constexpr (is_differentiable(scalar_type_of<T>)) {
      if (exponent.equal(0.5)) return elementwise<T, T>(it, functors::Sqrt{});
      if (exponent.equal(-0.5)) return elementwise<T, T>(it, functors::Rsqrt{});
      if (exponent.equal(-1)) return elementwise<T, T>(it, functors::Reciprocal{});
    }
    elementwise_slow<T, T>(it, functors::PowScalar<Math>{exponent.to<Math>()});
  }
};

void pow_scalar(TensorIterator& it, const Scalar& exponent) {
  pick<PowScalarLoop>(NumberTypes(), it.common_dtype(), it.op())(it, exponent);
}

}  // namespace

void register_power() {
  kernels::pow.set(kCUDA, map_slow<functors::Pow, NumberTypes>);
  kernels::pow_scalar.set(kCUDA, pow_scalar);
  kernels::atan2.set(kCUDA, map_slow<functors::Atan2, RealFloatTypes>);
  kernels::copysign.set(kCUDA, map_slow<functors::Copysign, RealFloatTypes>);
  kernels::gcd.set(kCUDA, map_slow<functors::Gcd, IntegerTypes>);
  kernels::heaviside.set(kCUDA, map_slow<functors::Heaviside, RealAndBoolTypes>);
  kernels::hypot.set(kCUDA, map_slow<functors::Hypot, RealFloatTypes>);
  kernels::lcm.set(kCUDA, map_slow<functors::Lcm, IntegerTypes>);
  kernels::logaddexp2.set(kCUDA, map_slow<functors::LogAddExp2, RealFloatTypes>);
  kernels::nextafter.set(kCUDA, map_by_storage<functors::Nextafter, functors::NextafterOf, RealFloatTypes>);
  kernels::xlogy.set(kCUDA, map_slow<functors::Xlogy, RealFloatTypes>);
}

}  // namespace rush::cuda
