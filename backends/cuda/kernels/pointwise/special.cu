#include "backends/functors/special.h"

#include "backends/cuda/kernels/launch.h"
#include "backends/cuda/kernels/pointwise/register_pointwise.h"
#include "backends/functors/unary.h"
#include "core/ops/pointwise/unary.h"

namespace rush::cuda {

namespace {

struct PolygammaLoop {
  template <class T>
  static void run(TensorIterator& it, int64_t n) {
    elementwise_slow<T, T>(it, functors::Polygamma{n});
  }
};
void polygamma(TensorIterator& it, int64_t n) {
  pick<PolygammaLoop>(RealFloatTypes(), it.common_dtype(), it.op())(it, n);
}

template <template <class> class F>
struct LogitLoop {
  template <class T>
  static void run(TensorIterator& it, double eps) {
    using Math = opmath_t<T>;
    apply<T, T, true>(it, F<Math>{static_cast<Math>(eps)});
  }
};
template <template <class> class F>
void logit(TensorIterator& it, double eps) {
  pick<LogitLoop<F>>(RealFloatTypes(), it.common_dtype(), it.op())(it, eps);
}

}  // namespace

void register_special() {
  kernels::erfc.set(kCUDA, map_slow<functors::Erfc, RealFloatTypes>);
  kernels::erfinv.set(kCUDA, map_slow<functors::Erfinv, RealFloatTypes>);
  kernels::lgamma.set(kCUDA, map_slow<functors::Lgamma, RealFloatTypes>);
  kernels::digamma.set(kCUDA, map_slow<functors::Digamma, RealFloatTypes>);
  kernels::polygamma.set(kCUDA, polygamma);
  kernels::logit.set(kCUDA, logit<functors::Logit>);
  kernels::logit_backward.set(kCUDA, logit<functors::LogitBackward>);
}

}  // namespace rush::cuda
