#include "core/ops/pointwise/power.h"

#include "backends/cuda/kernels/pointwise/register_pointwise.h"
#include "backends/cuda/kernels/pointwise/set_kernels.h"
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
  set_kernels(functors::PowerTable());
  kernels::pow_scalar.set(kCUDA, pow_scalar);
}

}  // namespace rush::cuda
