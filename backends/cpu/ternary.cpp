#include "core/ops/ternary.h"

#include "backends/cpu/blocks.h"
#include "backends/cpu/register.h"
#include "backends/functors/ternary.h"

namespace rush::cpu {

namespace {

struct WhereLoop {
  template <class T>
  static void run(TensorIterator& it) {
    const functors::Where functor{};
    run_blocks(it, block<functors::Where, opmath_t<T>, bool, opmath_t<T>, opmath_t<T>>, &functor);
  }
};
void where(TensorIterator& it) { pick<WhereLoop>(AllTypes(), it.dtype(), it.op())(it); }

struct ClampScalarLoop {
  template <class T>
  static void run(TensorIterator& it, const OptionalScalar& min, const OptionalScalar& max) {
    using Math = opmath_t<T>;
    const Math low = min ? min->to<Math>() : Math(), high = max ? max->to<Math>() : Math();
    if (!max) return apply(it, functors::ClampMin<Math>{low});
    if (!min) return apply(it, functors::ClampMax<Math>{high});
    apply(it, functors::ClampScalar<Math>{low, high});
  }

 private:
  template <template <class> class F, class Math>
  static void apply(TensorIterator& it, const F<Math>& functor) {
    run_blocks(it, block_of<Math, Math, F<Math>>(), &functor);
  }
};
void clamp_scalar(TensorIterator& it, const OptionalScalar& min, const OptionalScalar& max) {
  pick<ClampScalarLoop>(RealTypes(), it.common_dtype(), it.op())(it, min, max);
}

}  // namespace

void register_ternary() {
  kernels::where.set(kCPU, where);
  kernels::addcmul.set(kCPU, map_with<functors::Addcmul, NumberTypes, Scalar>);
  kernels::addcdiv.set(kCPU, map_with<functors::Addcdiv, FloatTypes, Scalar>);
  kernels::lerp.set(kCPU, map<functors::Lerp, FloatTypes>);
  kernels::lerp_scalar.set(kCPU, map_with<functors::LerpScalar, FloatTypes, Scalar>);
  kernels::clamp.set(kCPU, map<functors::Clamp, RealTypes>);
  kernels::clamp_scalar.set(kCPU, clamp_scalar);
}

}  // namespace rush::cpu
