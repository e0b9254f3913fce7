#include "core/ops/pointwise/ternary.h"

#include "backends/cuda/kernels/pointwise/register_pointwise.h"
#include "backends/cuda/kernels/pointwise/set_kernels.h"
#include "backends/functors/ternary.h"

namespace rush::cuda {

namespace {

struct WhereLoop {
  template <class T>
  static void run(TensorIterator& it) {
    elementwise<T, bool, T, T>(it, functors::Where{});
  }
};
void where(TensorIterator& it) { pick<WhereLoop>(AllTypes(), it.dtype(), it.op())(it); }

struct ClampScalarLoop {
  template <class T>
  static void run(TensorIterator& it, const OptionalScalar& min, const OptionalScalar& max) {
    using Math = opmath_t<T>;
    const Math low = min ? min->to<Math>() : Math(), high = max ? max->to<Math>() : Math();
    if (!max) return elementwise<T, T>(it, functors::ClampMin<Math>{low});
    if (!min) return elementwise<T, T>(it, functors::ClampMax<Math>{high});
    elementwise<T, T>(it, functors::ClampScalar<Math>{low, high});
  }
};
void clamp_scalar(TensorIterator& it, const OptionalScalar& min, const OptionalScalar& max) {
  pick<ClampScalarLoop>(RealTypes(), it.common_dtype(), it.op())(it, min, max);
}

}  // namespace

void register_ternary() {
  set_kernels(functors::TernaryTable());
  kernels::where.set(kCUDA, where);
  kernels::clamp_scalar.set(kCUDA, clamp_scalar);
}

}  // namespace rush::cuda
