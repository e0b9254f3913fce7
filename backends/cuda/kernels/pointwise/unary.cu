// Signs, rounding, predicates: kernels of one operand that are cheap.
#include "core/ops/pointwise/unary.h"

#include "backends/cuda/kernels/launch.h"
#include "backends/cuda/kernels/pointwise/register_pointwise.h"
#include "backends/functors/compare.h"
#include "backends/functors/unary.h"
#include "core/ops/pointwise/complex.h"

namespace rush::cuda {

namespace {

// The output is real where the input is complex.
template <class F>
struct MapToRealLoop {
  template <class T>
  static void run(TensorIterator& it) {
    if constexpr (is_complex_v<T>) {
      elementwise<typename T::value_type, T>(it, F{});
    } else {
      elementwise<T, T>(it, F{});
    }
  }
};

void abs(TensorIterator& it) { pick<MapToRealLoop<functors::Abs>>(NumberTypes(), it.common_dtype(), it.op())(it); }
void angle(TensorIterator& it) { pick<MapToRealLoop<functors::Angle>>(FloatTypes(), it.common_dtype(), it.op())(it); }

struct RoundDecimalsLoop {
  template <class T>
  static void run(TensorIterator& it, int64_t decimals) {
    using Math = opmath_t<T>;
    const auto power = static_cast<Math>(std::pow(10.0, std::abs(static_cast<double>(decimals))));
    elementwise<T, T>(it, functors::RoundDecimals<Math>{power, decimals < 0});
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

struct NanToNumLoop {
  template <class T>
  static void run(TensorIterator& it, std::optional<double> nan, std::optional<double> posinf,
                  std::optional<double> neginf) {
    using Real = typename RealOf<opmath_t<T>>::type;
    // The largest number of the dtype, as the type that is computed in.
    const auto largest = static_cast<double>(std::numeric_limits<typename RealOf<T>::type>::max());
    elementwise<T, T>(
        it, functors::NanToNum<Real>{static_cast<Real>(nan.value_or(0)), static_cast<Real>(posinf.value_or(largest)),
                                     static_cast<Real>(neginf.value_or(-largest))});
  }
};

void nan_to_num(TensorIterator& it, std::optional<double> nan, std::optional<double> posinf,
                std::optional<double> neginf) {
  pick<NanToNumLoop>(FloatTypes(), it.common_dtype(), it.op())(it, nan, posinf, neginf);
}

}  // namespace

void register_unary() {
  kernels::neg.set(kCUDA, map<functors::Neg, NumberTypes>);
  kernels::abs.set(kCUDA, abs);
  kernels::angle.set(kCUDA, angle);
  kernels::sign.set(kCUDA, map<functors::Sign, RealAndBoolTypes>);
  kernels::sgn.set(kCUDA, map<functors::Sgn, AllTypes>);
  kernels::conj_physical.set(kCUDA, map<functors::Conj, AllTypes>);
  kernels::bitwise_not.set(kCUDA, map<functors::BitwiseNot, IntegerAndBoolTypes>);
  kernels::logical_not.set(kCUDA, map_to_bool<functors::LogicalNot, AllTypes>);
  kernels::signbit.set(kCUDA, map_to_bool<functors::Signbit, RealAndBoolTypes>);
  kernels::isnan.set(kCUDA, map_to_bool<functors::IsNan, FloatTypes>);
  kernels::isinf.set(kCUDA, map_to_bool<functors::IsInf, FloatTypes>);
  kernels::isfinite.set(kCUDA, map_to_bool<functors::IsFinite, FloatTypes>);
  kernels::isposinf.set(kCUDA, map_to_bool<functors::IsPosInf, RealFloatTypes>);
  kernels::isneginf.set(kCUDA, map_to_bool<functors::IsNegInf, RealFloatTypes>);
  kernels::isreal.set(kCUDA, map_to_bool<functors::IsReal, ComplexTypes>);
  kernels::ceil.set(kCUDA, map<functors::Ceil, RealFloatTypes>);
  kernels::floor.set(kCUDA, map<functors::Floor, RealFloatTypes>);
  kernels::trunc.set(kCUDA, map<functors::Trunc, RealFloatTypes>);
  kernels::round.set(kCUDA, map<functors::Round, RealFloatTypes>);
  kernels::frac.set(kCUDA, map<functors::Frac, RealFloatTypes>);
  kernels::round_decimals.set(kCUDA, round_decimals);
  kernels::nan_to_num.set(kCUDA, nan_to_num);
  kernels::deg2rad.set(kCUDA, map<functors::Deg2Rad, RealFloatTypes>);
  kernels::rad2deg.set(kCUDA, map<functors::Rad2Deg, RealFloatTypes>);
}

}  // namespace rush::cuda
