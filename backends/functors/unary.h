// Functions of one operand. T is the type that the computation is done in: float for the 16-bit ones. See Note
// [Functors on one number and on several].
#pragma once
#include <cmath>
#include <limits>
#include <optional>

#include "backends/functors/select.h"
#include "core/complex_math.h"
#include "core/integer.h"
#include "core/scalar_type.h"
#ifndef __CUDACC_RTC__  // see Note [Functors compiled at run time]
#include "backends/functors/table.h"
#include "core/ops/pointwise/complex.h"
#include "core/ops/pointwise/unary.h"
#endif

namespace rush::functors {

// The functions that the standard library has, of real and complex numbers alike.
#define RUSH_DEFINE_FUNCTOR(Name, name) \
  struct Name {                         \
    template <class T>                  \
    RUSH_HD T operator()(T a) const {   \
      using std::name;                  \
      return name(a);                   \
    }                                   \
  };
RUSH_DEFINE_FUNCTOR(Acos, acos)
RUSH_DEFINE_FUNCTOR(Acosh, acosh)
RUSH_DEFINE_FUNCTOR(Asin, asin)
RUSH_DEFINE_FUNCTOR(Asinh, asinh)
RUSH_DEFINE_FUNCTOR(Atan, atan)
RUSH_DEFINE_FUNCTOR(Atanh, atanh)
RUSH_DEFINE_FUNCTOR(Ceil, ceil)
RUSH_DEFINE_FUNCTOR(Cos, cos)
RUSH_DEFINE_FUNCTOR(Cosh, cosh)
RUSH_DEFINE_FUNCTOR(Erf, erf)
RUSH_DEFINE_FUNCTOR(Erfc, erfc)
RUSH_DEFINE_FUNCTOR(Exp, exp)
RUSH_DEFINE_FUNCTOR(Exp2, exp2)
RUSH_DEFINE_FUNCTOR(Expm1, expm1)
RUSH_DEFINE_FUNCTOR(Floor, floor)
RUSH_DEFINE_FUNCTOR(Lgamma, lgamma)
RUSH_DEFINE_FUNCTOR(Log, log)
RUSH_DEFINE_FUNCTOR(Log10, log10)
RUSH_DEFINE_FUNCTOR(Log1p, log1p)
RUSH_DEFINE_FUNCTOR(Log2, log2)
RUSH_DEFINE_FUNCTOR(Round, nearbyint)
RUSH_DEFINE_FUNCTOR(Sin, sin)
RUSH_DEFINE_FUNCTOR(Sinh, sinh)
RUSH_DEFINE_FUNCTOR(Sqrt, sqrt)
RUSH_DEFINE_FUNCTOR(Tan, tan)
RUSH_DEFINE_FUNCTOR(Tanh, tanh)
RUSH_DEFINE_FUNCTOR(Trunc, trunc)
#undef RUSH_DEFINE_FUNCTOR

struct Neg {
  template <class T>
  RUSH_HD T operator()(T a) const {
    if constexpr (is_integer<T>) return wrap_sub(T(0), a);
    return static_cast<T>(-a);
  }
};

struct Abs {  // of complex numbers, the real magnitude
  template <class T>
  RUSH_HD T operator()(complex<T> a) const {
    return abs(a);
  }
  template <class T>
  RUSH_HD T operator()(T a) const {
    if constexpr (is_integer<T>) return a < T(0) ? wrap_sub(T(0), a) : a;
    return std::abs(a);
  }
};

struct Sign {
  template <class T>
  RUSH_HD T operator()(T a) const {
    return static_cast<T>((T(0) < a) - (a < T(0)));
  }
};

struct Sgn {
  template <class T>
  RUSH_HD complex<T> operator()(complex<T> a) const {
    return a == complex<T>(0) ? a : a / complex<T>(abs(a));
  }
  template <class T>
  RUSH_HD T operator()(T a) const {
    return Sign()(a);
  }
};

struct Signbit {
  template <class T>
  RUSH_HD bool operator()(T a) const {
    if constexpr (std::is_floating_point_v<T>) return std::signbit(a);
    return a < T(0);
  }
};

struct Conj {
  template <class T>
  RUSH_HD complex<T> operator()(complex<T> a) const {
    return conj(a);
  }
  template <class T>
  RUSH_HD T operator()(T a) const {
    return a;
  }
};

struct Angle {
  template <class T>
  RUSH_HD T operator()(complex<T> a) const {
    return arg(a);
  }
  template <class T>
  RUSH_HD T operator()(T a) const {
    return a != a ? a : a < T(0) ? T(3.14159265358979323846) : T(0);
  }
};

struct Frac {
  template <class T>
  RUSH_HD T operator()(T a) const {
    return a - std::trunc(a);
  }
};

template <class T>
struct RoundDecimals {
  T power;  // 10^|decimals|
  bool negative;
  explicit RoundDecimals(T decimals)
      : power(static_cast<T>(std::pow(10.0, std::abs(static_cast<double>(decimals))))), negative(decimals < 0) {}
  template <class V>
  RUSH_HD V operator()(V a) const {
    using std::nearbyint;
    return negative ? nearbyint(a / V(power)) * V(power) : nearbyint(a * V(power)) / V(power);
  }
};

struct Reciprocal {
  template <class T>
  RUSH_HD T operator()(T a) const {
    return T(1) / a;
  }
};

struct Rsqrt {
  template <class T>
  RUSH_HD T operator()(T a) const {
    using std::sqrt;
    return T(1) / sqrt(a);
  }
};

struct Sigmoid {
  template <class T>
  RUSH_HD T operator()(T a) const {
    using std::exp;
    return T(1) / (T(1) + exp(-a));
  }
};

struct SigmoidBackward {  // g y (1 - y)
  template <class T>
  RUSH_HD T operator()(T grad, T y) const {
    return grad * Conj()((T(1) - y) * y);
  }
};

struct TanhBackward {  // g (1 - y^2)
  template <class T>
  RUSH_HD T operator()(T grad, T y) const {
    return grad * Conj()(T(1) - y * y);
  }
};

struct Sinc {
  template <class T>
  RUSH_HD T operator()(T a) const {
    using std::sin;
    if (a == T(0)) return T(1);
    const T scaled = T(3.14159265358979323846) * a;
    return sin(scaled) / scaled;
  }
};

struct Deg2Rad {
  template <class T>
  RUSH_HD T operator()(T a) const {
    return a * T(0.017453292519943295769);
  }
};

struct Rad2Deg {
  template <class T>
  RUSH_HD T operator()(T a) const {
    return a * T(57.29577951308232087680);
  }
};

template <class T>
struct RealOf {
  using type = T;
};
template <class T>
struct RealOf<complex<T>> {
  using type = T;
};

// NaN and infinities replaced: by 0 and the largest numbers of Storage unless given.
template <class Storage>
struct NanToNum {
  using Number = typename RealOf<Storage>::type;
  using Math = opmath_t<Number>;
  Math nan, posinf, neginf;
  NanToNum(std::optional<double> for_nan, std::optional<double> for_posinf, std::optional<double> for_neginf)
      : nan(static_cast<Math>(for_nan.value_or(0))),
        posinf(static_cast<Math>(for_posinf.value_or(static_cast<double>(std::numeric_limits<Number>::max())))),
        neginf(static_cast<Math>(for_neginf.value_or(static_cast<double>(std::numeric_limits<Number>::lowest())))) {}
  RUSH_HD Math of_real(Math a) const {
    constexpr Math kInf = std::numeric_limits<Math>::infinity();
    const Math finite = select(a == kInf, posinf, select(a == -kInf, neginf, a));
    return select(a != a, nan, finite);
  }
  RUSH_HD complex<Math> operator()(complex<Math> a) const { return {of_real(a.real()), of_real(a.imag())}; }
  RUSH_HD Math operator()(Math a) const { return of_real(a); }
};

struct IsNan {
  template <class T>
  RUSH_HD bool operator()(T a) const {
    return !(a == a);
  }
};
struct IsInf {
  template <class T>
  RUSH_HD bool operator()(complex<T> a) const {
    return std::isinf(a.real()) || std::isinf(a.imag());
  }
  template <class T>
  RUSH_HD bool operator()(T a) const {
    return std::isinf(a);
  }
};
struct IsFinite {
  template <class T>
  RUSH_HD bool operator()(complex<T> a) const {
    return std::isfinite(a.real()) && std::isfinite(a.imag());
  }
  template <class T>
  RUSH_HD bool operator()(T a) const {
    return std::isfinite(a);
  }
};
struct IsPosInf {
  template <class T>
  RUSH_HD bool operator()(T a) const {
    return a > 0 && std::isinf(a);
  }
};
struct IsNegInf {
  template <class T>
  RUSH_HD bool operator()(T a) const {
    return a < 0 && std::isinf(a);
  }
};
struct IsReal {
  template <class T>
  RUSH_HD bool operator()(complex<T> a) const {
    return a.imag() == 0;
  }
};

#ifndef __CUDACC_RTC__
// Signs, rounding, predicates: what is cheap.
using UnaryTable =
    Table<Row<kernels::neg, Neg, NumberTypes>, Row<kernels::abs, Abs, NumberTypes>,
          Row<kernels::angle, Angle, FloatTypes>, Row<kernels::sign, Sign, RealAndBoolTypes>,
          Row<kernels::sgn, Sgn, AllTypes>, Row<kernels::conj_physical, Conj, AllTypes>,
          Row<kernels::signbit, Signbit, RealAndBoolTypes>, Row<kernels::isnan, IsNan, FloatTypes>,
          Row<kernels::isinf, IsInf, FloatTypes>, Row<kernels::isfinite, IsFinite, FloatTypes>,
          Row<kernels::isposinf, IsPosInf, RealFloatTypes>, Row<kernels::isneginf, IsNegInf, RealFloatTypes>,
          Row<kernels::isreal, IsReal, ComplexTypes>, Row<kernels::ceil, Ceil, RealFloatTypes>,
          Row<kernels::floor, Floor, RealFloatTypes>, Row<kernels::trunc, Trunc, RealFloatTypes>,
          Row<kernels::round, Round, RealFloatTypes>, Row<kernels::frac, Frac, RealFloatTypes>,
          Row<kernels::round_decimals, With<RoundDecimals>, RealFloatTypes, kVectors>,
          Row<kernels::nan_to_num, OfStorage<NanToNum>, FloatTypes>, Row<kernels::deg2rad, Deg2Rad, RealFloatTypes>,
          Row<kernels::rad2deg, Rad2Deg, RealFloatTypes>>;

// Roots, exponentials and logarithms, and the activations made of them: what networks use.
using UnaryMathTable = Table<
    Row<kernels::reciprocal, Reciprocal, FloatTypes>, Row<kernels::sqrt, Sqrt, FloatTypes>,
    Row<kernels::rsqrt, Rsqrt, FloatTypes>, Row<kernels::exp, Exp, FloatTypes, kVectors>,
    Row<kernels::exp2, Exp2, FloatTypes, kVectors | kSlow>, Row<kernels::expm1, Expm1, FloatTypes, kVectors | kSlow>,
    Row<kernels::log, Log, FloatTypes, kVectors>, Row<kernels::log2, Log2, FloatTypes, kVectors | kSlow>,
    Row<kernels::log10, Log10, FloatTypes, kVectors | kSlow>, Row<kernels::log1p, Log1p, FloatTypes, kVectors>,
    Row<kernels::tanh, Tanh, FloatTypes, kVectors>, Row<kernels::tanh_backward, TanhBackward, FloatTypes>,
    Row<kernels::sigmoid, Sigmoid, FloatTypes, kVectors>, Row<kernels::sigmoid_backward, SigmoidBackward, FloatTypes>,
    Row<kernels::erf, Erf, RealFloatTypes, kVectors>>;

using TrigonometryTable = Table<
    Row<kernels::sin, Sin, FloatTypes, kVectors | kSlow>, Row<kernels::cos, Cos, FloatTypes, kVectors | kSlow>,
    Row<kernels::tan, Tan, FloatTypes, kVectors | kSlow>, Row<kernels::atan, Atan, FloatTypes, kVectors | kSlow>,
    Row<kernels::asin, Asin, FloatTypes, kVectors | kSlow>, Row<kernels::acos, Acos, FloatTypes, kVectors | kSlow>,
    Row<kernels::sinh, Sinh, FloatTypes, kVectors | kSlow>, Row<kernels::cosh, Cosh, FloatTypes, kVectors | kSlow>,
    Row<kernels::asinh, Asinh, FloatTypes, kSlow>, Row<kernels::acosh, Acosh, FloatTypes, kSlow>,
    Row<kernels::atanh, Atanh, FloatTypes, kVectors | kSlow>, Row<kernels::sinc, Sinc, FloatTypes, kSlow>>;
#endif

}  // namespace rush::functors
