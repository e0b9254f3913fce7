// Arithmetic of two operands. T is the type that the computation is done in: float for the 16-bit ones.
#pragma once
#include <cmath>
#include <limits>

#include "backends/functors/divisor.h"
#include "backends/functors/select.h"
#include "core/complex_math.h"
#include "core/integer.h"
#include "core/scalar_type.h"
#ifndef __CUDACC_RTC__  // see Note [Functors compiled at run time]
#include "backends/functors/table.h"
#include "core/ops/pointwise/binary.h"
#include "core/ops/pointwise/power.h"
#endif

namespace rush::functors {

struct Add {
  template <class T>
  RUSH_HD T operator()(T a, T b) const {
    if constexpr (is_integer<T>) return wrap_add(a, b);
    return static_cast<T>(a + b);
  }
};

template <class T>
struct AddScaled {  // a + alpha * b
  T alpha;
  RUSH_HD T operator()(T a, T b) const {
    if constexpr (is_integer<T>) return wrap_add(a, wrap_mul(alpha, b));
    return static_cast<T>(a + alpha * b);
  }
};

struct Mul {
  template <class T>
  RUSH_HD T operator()(T a, T b) const {
    if constexpr (is_integer<T>) return wrap_mul(a, b);
    return static_cast<T>(a * b);
  }
};

struct Div {
  template <class T>
  RUSH_HD T operator()(T a, T b) const {
    return a / b;
  }
};

// Integer divisors are not 0: the kernels check. The smallest integer by -1 wraps around. The quotient of 16-bit
// numbers is rounded to 16 bits before it is cut.
template <class Storage>
struct DivTrunc {
  using T = opmath_t<Storage>;
  RUSH_HD T operator()(T a, T b) const {
    if constexpr (is_integer<T>) {
      if constexpr (std::is_signed_v<T>) {
        if (b == -1) return wrap_sub(T(0), a);
      }
      return static_cast<T>(a / b);
    } else {
      return std::trunc(static_cast<T>(static_cast<Storage>(a / b)));
    }
  }
};

struct DivFloor {
  template <class T>
  RUSH_HD T operator()(T a, T b) const {
    if constexpr (is_integer<T>) {
      const T quotient = DivTrunc<T>()(a, b);
      if constexpr (std::is_signed_v<T>) {
        if (b != -1 && a % b != 0 && (a < 0) != (b < 0)) return static_cast<T>(quotient - 1);
      }
      return quotient;
    } else {
      // Python's: the exact remainder decides, since a / b may be rounded up to an integer.
      using std::abs, std::copysign, std::floor, std::fmod;
      const T infinity(std::numeric_limits<double>::infinity());
      const T ratio = a / b, rest = fmod(a, b);
      T quotient = (a - rest) / b;
      quotient = select((rest != T(0)) & ((b < T(0)) ^ (rest < T(0))), quotient - T(1), quotient);
      const T below = floor(quotient);
      const T rounded = copysign(select(quotient - below > T(0.5), below + T(1), below), ratio);
      // A number divided by 0, or by so little that the quotient is too large, has no rest.
      return select((abs(ratio) == infinity) & ((abs(a) < infinity) | (b == T(0))), ratio, rounded);
    }
  }
};

// NaN where a / b is too large for T, as in PyTorch.
struct Fmod {
  template <class T>
  RUSH_HD T operator()(T a, T b) const {
    if constexpr (is_integer<T>) {
      if constexpr (std::is_signed_v<T>) {
        if (b == -1) return 0;
      }
      return static_cast<T>(a % b);
    } else if constexpr (std::is_floating_point_v<T>) {
      return std::isinf(a / b) ? std::numeric_limits<T>::quiet_NaN() : std::fmod(a, b);
    } else {
      return fmod(a, b);
    }
  }
};

struct Remainder {
  template <class T>
  RUSH_HD T operator()(T a, T b) const {
    const T rest = Fmod()(a, b);
    return select((rest != T(0)) & ((b < T(0)) ^ (rest < T(0))), static_cast<T>(rest + b), rest);
  }
};

struct Pow {
  // Repeated squaring; a negative exponent leaves 0 of all but 1 and -1.
  template <class T>
  RUSH_HD static T of_integers(T base, T exponent) {
    if constexpr (std::is_signed_v<T>) {
      if (exponent < 0) return base == 1 ? T(1) : base == -1 ? T(exponent % 2 ? -1 : 1) : T(0);
    }
    T result = 1;
    for (; exponent; exponent = static_cast<T>(exponent / 2)) {
      if (exponent % 2) result = wrap_mul(result, base);
      base = wrap_mul(base, base);
    }
    return result;
  }
  template <class T>
  RUSH_HD T operator()(T base, T exponent) const {
    if constexpr (is_integer<T>) {
      return of_integers(base, exponent);
    } else {
      using std::pow;
      return pow(base, exponent);
    }
  }
};

template <class T>
struct PowScalar {
  T exponent;
  template <class V>
  RUSH_HD V operator()(V base) const {
    return Pow()(base, V(exponent));
  }
};

struct Square {
  template <class T>
  RUSH_HD T operator()(T a) const {
    return Mul()(a, a);
  }
};

struct Cube {
  template <class T>
  RUSH_HD T operator()(T a) const {
    return Mul()(Mul()(a, a), a);
  }
};

// The functions that the standard library has.
#define RUSH_DEFINE_FUNCTOR(Name, name)    \
  struct Name {                            \
    template <class T>                     \
    RUSH_HD T operator()(T a, T b) const { \
      using std::name;                     \
      return name(a, b);                   \
    }                                      \
  };
RUSH_DEFINE_FUNCTOR(Atan2, atan2)
RUSH_DEFINE_FUNCTOR(Copysign, copysign)
RUSH_DEFINE_FUNCTOR(Hypot, hypot)
#undef RUSH_DEFINE_FUNCTOR

// 16-bit numbers are given as floats. Their bits count up with their size.
template <class Storage>
struct Nextafter {
  template <class T>
  requires(!is_reduced_float_v<Storage> || std::is_same_v<T, float>) RUSH_HD T operator()(T a, T b) const {
    if constexpr (!is_reduced_float_v<Storage>) {
      using std::nextafter;
      return nextafter(a, b);
    } else {
      if (a != a || b != b) return a + b;
      if (a == b) return b;
      if (a == 0) return std::copysign(static_cast<float>(Storage::from_bits(1)), b);
      const uint16_t bits = Storage(a).bits;
      return Storage::from_bits(static_cast<uint16_t>((a < b) == (a > 0) ? bits + 1 : bits - 1));
    }
  }
};

struct Heaviside {
  template <class T>
  RUSH_HD T operator()(T a, T at_zero) const {
    return a == T(0) ? at_zero : static_cast<T>(a > T(0));
  }
};

struct Xlogy {
  template <class T>
  RUSH_HD T operator()(T a, T b) const {
    using std::log;
    return select((a == T(0)) & (b == b), T(0), a * log(b));
  }
};

struct Xlog1py {
  template <class T>
  RUSH_HD T operator()(T a, T b) const {
    using std::log1p;
    return select((a == T(0)) & (b == b), T(0), a * log1p(b));
  }
};

// log(e^a + e^b) = m + log(1 + e^-|a-b|), m the larger. Equal infinities are their own answer.
struct LogAddExp {
  template <class T>
  RUSH_HD complex<T> operator()(complex<T> a, complex<T> b) const {
    const complex<T> larger = a.real() < b.real() ? b : a, smaller = a.real() < b.real() ? a : b;
    const bool both_infinite = std::isinf(larger.real()) && larger.real() == smaller.real();
    if (both_infinite) return larger.real() < 0 ? larger : log(exp(a) + exp(b));
    return larger + log1p(exp(smaller - larger));
  }
  template <class T>
  RUSH_HD T operator()(T a, T b) const {
    using std::abs, std::exp, std::log1p;
    return select(a == b, a + T(0.693147180559945309), select(a < b, b, a) + log1p(exp(-abs(a - b))));
  }
};

struct LogAddExp2 {
  template <class T>
  RUSH_HD T operator()(T a, T b) const {
    using std::abs, std::exp2, std::log1p;
    return select(a == b, a + T(1), select(a < b, b, a) + log1p(exp2(-abs(a - b))) * T(1.44269504088896341));
  }
};

#ifndef __CUDACC_RTC__
using BinaryTable =
    Table<Row<kernels::mul, Mul, AllTypes, kEveryLayout>, Row<kernels::div, Div, FloatTypes, kEveryLayout>>;

using PowerTable =
    Table<Row<kernels::nextafter, OfStorage<Nextafter>, RealFloatTypes, kVectors | kSlow>,
          Row<kernels::special_xlog1py, Xlog1py, RealFloatTypes, kVectors | kSlow>,
          Row<kernels::atan2, Atan2, RealFloatTypes, kVectors | kSlow>, Row<kernels::gcd, Gcd, IntegerTypes, kSlow>,
          Row<kernels::hypot, Hypot, RealFloatTypes, kVectors | kSlow>, Row<kernels::lcm, Lcm, IntegerTypes, kSlow>,
          Row<kernels::xlogy, Xlogy, RealFloatTypes, kVectors | kSlow>,
          Row<kernels::pow, Pow, NumberTypes, kVectors | kSlow>, Row<kernels::heaviside, Heaviside, RealAndBoolTypes>,
          Row<kernels::copysign, Copysign, RealFloatTypes>>;

using LogAddExpTable = Table<Row<kernels::logaddexp, LogAddExp, FloatTypes, kVectors | kSlow>,
                             Row<kernels::logaddexp2, LogAddExp2, RealFloatTypes, kVectors | kSlow>>;
#endif

}  // namespace rush::functors
