// Exponentials, logarithms, trigonometry and special functions: kernels of one operand that are not cheap.
#include "backends/cpu/pointwise/vec_math.h"
#include "backends/cpu/register.h"
#include "backends/functors/special.h"
#include "backends/functors/unary.h"
#include "core/ops/pointwise/unary.h"

namespace rush::cpu {

namespace {

template <class T, class F>
void run_slow(TensorIterator& it, const F& functor) {
  run_blocks(it, block_of<opmath_t<T>, opmath_t<T>, F>(), &functor, kSlowGrain);
}

struct PolygammaLoop {
  template <class T>
  static void run(TensorIterator& it, int64_t n) {
    run_slow<T>(it, functors::Polygamma{n});
  }
};
void polygamma(TensorIterator& it, int64_t n) {
  pick<PolygammaLoop>(RealFloatTypes(), it.common_dtype(), it.op())(it, n);
}

template <template <class> class F>
struct LogitLoop {
  template <class T>
  static void run(TensorIterator& it, double eps) {
    run_slow<T>(it, F<opmath_t<T>>{static_cast<opmath_t<T>>(eps)});
  }
};
template <template <class> class F>
void logit(TensorIterator& it, double eps) {
  pick<LogitLoop<F>>(RealFloatTypes(), it.common_dtype(), it.op())(it, eps);
}

}  // namespace

void register_unary_math() {
  kernels::exp.set(kCPU, map_vec<functors::Exp, FloatTypes>);
  kernels::exp2.set(kCPU, map_vec<functors::Exp2, FloatTypes>);
  kernels::expm1.set(kCPU, map_vec<functors::Expm1, FloatTypes>);
  kernels::log.set(kCPU, map_vec<functors::Log, FloatTypes>);
  kernels::log2.set(kCPU, map_vec<functors::Log2, FloatTypes>);
  kernels::log10.set(kCPU, map_vec<functors::Log10, FloatTypes>);
  kernels::log1p.set(kCPU, map_vec<functors::Log1p, FloatTypes>);
  kernels::sin.set(kCPU, map_vec<functors::Sin, FloatTypes>);
  kernels::cos.set(kCPU, map_vec<functors::Cos, FloatTypes>);
  kernels::tan.set(kCPU, map_vec<functors::Tan, FloatTypes>);
  kernels::atan.set(kCPU, map_vec<functors::Atan, FloatTypes>);
  kernels::tanh.set(kCPU, map_vec<functors::Tanh, FloatTypes>);
  kernels::sigmoid.set(kCPU, map_vec<functors::Sigmoid, FloatTypes>);
  kernels::erf.set(kCPU, map_vec<functors::Erf, RealFloatTypes>);

  kernels::acos.set(kCPU, map<functors::Acos, FloatTypes, kSlowGrain>);
  kernels::acosh.set(kCPU, map<functors::Acosh, FloatTypes, kSlowGrain>);
  kernels::asin.set(kCPU, map<functors::Asin, FloatTypes, kSlowGrain>);
  kernels::asinh.set(kCPU, map<functors::Asinh, FloatTypes, kSlowGrain>);
  kernels::atanh.set(kCPU, map<functors::Atanh, FloatTypes, kSlowGrain>);
  kernels::cosh.set(kCPU, map<functors::Cosh, FloatTypes, kSlowGrain>);
  kernels::sinh.set(kCPU, map<functors::Sinh, FloatTypes, kSlowGrain>);
  kernels::sinc.set(kCPU, map<functors::Sinc, FloatTypes, kSlowGrain>);
  kernels::erfc.set(kCPU, map<functors::Erfc, RealFloatTypes, kSlowGrain>);
  kernels::erfinv.set(kCPU, map<functors::Erfinv, RealFloatTypes, kSlowGrain>);
  kernels::lgamma.set(kCPU, map<functors::Lgamma, RealFloatTypes, kSlowGrain>);
  kernels::digamma.set(kCPU, map<functors::Digamma, RealFloatTypes, kSlowGrain>);
  kernels::polygamma.set(kCPU, polygamma);
  kernels::logit.set(kCPU, logit<functors::Logit>);
  kernels::logit_backward.set(kCPU, logit<functors::LogitBackward>);
}

}  // namespace rush::cpu
