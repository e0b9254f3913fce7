#include "core/ops/pointwise/power.h"

#include "backends/cpu/pointwise/set_kernels.h"
#include "backends/cpu/register.h"
#include "backends/functors/binary.h"
#include "backends/functors/complex.h"
#include "backends/functors/unary.h"

namespace rush::cpu {

namespace {

struct SquareReciprocal {
  template <class T>
  T operator()(T a) const {
    return T(1) / (a * a);
  }
};

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
      if (exponent.equal(-2)) return apply<SquareReciprocal, Math>(it);
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

}  // namespace

void register_power() {
  set_kernels(functors::PowerTable());
  set_kernels(functors::LogAddExpTable());
  set_kernels(functors::ComplexTable());
  kernels::pow_scalar.set(kCPU, pow_scalar);
}

}  // namespace rush::cpu
