// Signs, rounding, predicates: kernels of one operand that are cheap.
#include "core/ops/pointwise/unary.h"

#include "backends/cpu/blocks.h"
#include "backends/cpu/register.h"
#include "backends/functors/compare.h"
#include "backends/functors/unary.h"
#include "core/ops/pointwise/complex.h"

namespace rush::cpu {

namespace {

// The output is real where the input is complex.
template <class F>
struct MapToRealLoop {
  template <class T>
  static void run(TensorIterator& it) {
    using Math = opmath_t<T>;
    const F functor{};
    run_blocks(it, block<F, decltype(functor(Math())), Math>, &functor);
  }
};

void abs(TensorIterator& it) { pick<MapToRealLoop<functors::Abs>>(NumberTypes(), it.common_dtype(), it.op())(it); }
void angle(TensorIterator& it) { pick<MapToRealLoop<functors::Angle>>(FloatTypes(), it.common_dtype(), it.op())(it); }

struct RoundDecimalsLoop {
  template <class T>
  static void run(TensorIterator& it, int64_t decimals) {
    using Math = opmath_t<T>;
    const auto power = static_cast<Math>(std::pow(10.0, std::abs(static_cast<double>(decimals))));
    const functors::RoundDecimals<Math> functor{power, decimals < 0};
    run_blocks(it, block_of<Math, Math, functors::RoundDecimals<Math>>(), &functor);
  }
};

void round_decimals(TensorIterator& it, int64_t decimals) {
  pick<RoundDecimalsLoop>(RealFloatTypes(), it.common_dtype(), it.op())(it, decimals);
}

template <class T>
struct RealOf {
  using type = T;
};
template <class T>
struct RealOf<complex<T>> {
  using type = T;
};

// The largest number of a dtype, as the type it is computed in.
template <class T>
double largest() {
  if constexpr (is_complex_v<T>) {
    return std::numeric_limits<typename RealOf<T>::type>::max();
  } else {
    return static_cast<double>(std::numeric_limits<T>::max());
  }
}

struct NanToNumLoop {
  template <class T>
  static void run(TensorIterator& it, std::optional<double> nan, std::optional<double> posinf,
                  std::optional<double> neginf) {
    using Math = opmath_t<T>;
    using Real = typename RealOf<Math>::type;
    const functors::NanToNum<Real> functor{static_cast<Real>(nan.value_or(0)),
                                           static_cast<Real>(posinf.value_or(largest<T>())),
                                           static_cast<Real>(neginf.value_or(-largest<T>()))};
    run_blocks(it, block<functors::NanToNum<Real>, Math, Math>, &functor);
  }
};

void nan_to_num(TensorIterator& it, std::optional<double> nan, std::optional<double> posinf,
                std::optional<double> neginf) {
  pick<NanToNumLoop>(FloatTypes(), it.common_dtype(), it.op())(it, nan, posinf, neginf);
}

}  // namespace

void register_unary() {
  kernels::neg.set(kCPU, map<functors::Neg, NumberTypes>);
  kernels::abs.set(kCPU, abs);
  kernels::angle.set(kCPU, angle);
  kernels::sign.set(kCPU, map<functors::Sign, RealAndBoolTypes>);
  kernels::sgn.set(kCPU, map<functors::Sgn, AllTypes>);
  kernels::conj_physical.set(kCPU, map<functors::Conj, AllTypes>);
  kernels::bitwise_not.set(kCPU, map<functors::BitwiseNot, IntegerAndBoolTypes>);
  kernels::logical_not.set(kCPU, map_to_bool<functors::LogicalNot, AllTypes>);
  kernels::signbit.set(kCPU, map_to_bool<functors::Signbit, RealAndBoolTypes>);
  kernels::isnan.set(kCPU, map_to_bool<functors::IsNan, FloatTypes>);
  kernels::isinf.set(kCPU, map_to_bool<functors::IsInf, FloatTypes>);
  kernels::isfinite.set(kCPU, map_to_bool<functors::IsFinite, FloatTypes>);
  kernels::isposinf.set(kCPU, map_to_bool<functors::IsPosInf, RealFloatTypes>);
  kernels::isneginf.set(kCPU, map_to_bool<functors::IsNegInf, RealFloatTypes>);
  kernels::isreal.set(kCPU, map_to_bool<functors::IsReal, ComplexTypes>);
  kernels::ceil.set(kCPU, map<functors::Ceil, RealFloatTypes>);
  kernels::floor.set(kCPU, map<functors::Floor, RealFloatTypes>);
  kernels::trunc.set(kCPU, map<functors::Trunc, RealFloatTypes>);
  kernels::round.set(kCPU, map<functors::Round, RealFloatTypes>);
  kernels::frac.set(kCPU, map<functors::Frac, RealFloatTypes>);
  kernels::round_decimals.set(kCPU, round_decimals);
  kernels::nan_to_num.set(kCPU, nan_to_num);
  kernels::deg2rad.set(kCPU, map<functors::Deg2Rad, RealFloatTypes>);
  kernels::rad2deg.set(kCPU, map<functors::Rad2Deg, RealFloatTypes>);
  kernels::reciprocal.set(kCPU, map<functors::Reciprocal, FloatTypes>);
  kernels::sqrt.set(kCPU, map<functors::Sqrt, FloatTypes>);
  kernels::rsqrt.set(kCPU, map<functors::Rsqrt, FloatTypes>);
  kernels::sigmoid_backward.set(kCPU, map<functors::SigmoidBackward, FloatTypes>);
  kernels::tanh_backward.set(kCPU, map<functors::TanhBackward, FloatTypes>);
}

}  // namespace rush::cpu
