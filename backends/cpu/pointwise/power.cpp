#include "core/ops/pointwise/power.h"

#include "backends/cpu/pointwise/vec_math.h"
#include "backends/cpu/register.h"
#include "backends/functors/binary.h"
#include "backends/functors/complex.h"
#include "backends/functors/unary.h"
#include "core/ops/pointwise/complex.h"

namespace rush::cpu {

namespace {

struct PowScalarLoop {
  template <class T>
  static void run(TensorIterator& it, const Scalar& exponent) {
    using Math = opmath_t<T>;
    if (exponent.equal(2)) return apply<functors::Square, Math>(it);
    if (exponent.equal(3)) return apply<functors::Cube, Math>(it);
    if constexpr (is_differentiable(scalar_type_of<T>)) {
      if (exponent.equal(0.5)) return apply<functors::Sqrt, Math>(it);
      if (exponent.equal(-0.5)) return apply<functors::Rsqrt, Math>(it);
      if (exponent.equal(-1)) return apply<functors::Reciprocal, Math>(it);
    }
    const functors::PowScalar<Math> functor{exponent.to<Math>()};
    run_blocks(it, vec_block_of<Math, functors::PowScalar<Math>>(), &functor, kSlowGrain);
  }

 private:
  template <class F, class Math>
  static void apply(TensorIterator& it) {
    const F functor{};
    run_blocks(it, block<F, Math, Math>, &functor);
  }
};

void pow_scalar(TensorIterator& it, const Scalar& exponent) {
  pick<PowScalarLoop>(NumberTypes(), it.common_dtype(), it.op())(it, exponent);
}

template <class F>
struct MakeComplexLoop {
  template <class T>
  static void run(TensorIterator& it) {
    const F functor{};
    run_blocks(it, block<F, complex<T>, T, T>, &functor, kSlowGrain);
  }
};
template <class F>
void make_complex(TensorIterator& it) {
  pick<MakeComplexLoop<F>>(TypeList<float, double>(), it.common_dtype(), it.op())(it);
}

}  // namespace

void register_power() {
  kernels::pow.set(kCPU, map_vec<functors::Pow, NumberTypes>);
  kernels::pow_scalar.set(kCPU, pow_scalar);
  kernels::atan2.set(kCPU, map_vec<functors::Atan2, RealFloatTypes>);
  kernels::copysign.set(kCPU, map<functors::Copysign, RealFloatTypes>);
  kernels::gcd.set(kCPU, map<functors::Gcd, IntegerTypes, kSlowGrain>);
  kernels::heaviside.set(kCPU, map<functors::Heaviside, RealAndBoolTypes>);
  kernels::hypot.set(kCPU, map<functors::Hypot, RealFloatTypes, kSlowGrain>);
  kernels::lcm.set(kCPU, map<functors::Lcm, IntegerTypes, kSlowGrain>);
  kernels::logaddexp.set(kCPU, map<functors::LogAddExp, FloatTypes, kSlowGrain>);
  kernels::logaddexp2.set(kCPU, map<functors::LogAddExp2, RealFloatTypes, kSlowGrain>);
  kernels::nextafter.set(kCPU, map_by_storage<functors::Nextafter, functors::NextafterOf, RealFloatTypes>);
  kernels::xlogy.set(kCPU, map<functors::Xlogy, RealFloatTypes, kSlowGrain>);
  kernels::complex.set(kCPU, make_complex<functors::MakeComplex>);
  kernels::polar.set(kCPU, make_complex<functors::MakePolar>);
}

}  // namespace rush::cpu
