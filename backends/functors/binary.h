// Arithmetic of two operands. T is the type that the computation is done in: float for the 16-bit ones.
#pragma once
#include <cmath>
#include <limits>

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
      if (b == 0) return a / b;
      const T rest = std::fmod(a, b);
      T quotient = (a - rest) / b;
      if (rest != 0 && (b < 0) != (rest < 0)) quotient -= 1;
      if (quotient == 0) return std::copysign(T(0), a / b);
      const T below = std::floor(quotient);
      return quotient - below > T(0.5) ? below + 1 : below;
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

struct Atan2 {
  template <class T>
  RUSH_HD T operator()(T y, T x) const {
    using std::atan2;
    return atan2(y, x);
  }
};

struct Hypot {
  template <class T>
  RUSH_HD T operator()(T a, T b) const {
    return std::hypot(a, b);
  }
};

struct Copysign {
  template <class T>
  RUSH_HD T operator()(T a, T b) const {
    return std::copysign(a, b);
  }
};

// 16-bit numbers are given as floats. Their bits count up with their size.
template <class Storage>
struct Nextafter {
  using T = opmath_t<Storage>;
  RUSH_HD T operator()(T a, T b) const {
    if constexpr (!is_reduced_float_v<Storage>) {
      return std::nextafter(a, b);
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
    return a == 0 && !(b != b) ? T(0) : a * std::log(b);
  }
};

struct Xlog1py {
  template <class T>
  RUSH_HD T operator()(T a, T b) const {
    return a == 0 && !(b != b) ? T(0) : a * std::log1p(b);
  }
};

// log(e^a + e^b) = m + log(1 + e^-|a-b|), m the larger. Equal infinities are their own answer.
struct LogAddExp {
  template <class T>
  RUSH_HD complex<T> operator()(complex<T> a, complex<T> b) const {
    const complex<T> larger = a.real() < b.real() ? b : a;
    const complex<T> smaller = a.real() < b.real() ? a : b;
    if (std::isinf(larger.real()) && larger.real() == smaller.real()) {
      return larger.real() < 0 ? larger : log(exp(a) + exp(b));
    }
    return larger + log1p(exp(smaller - larger));
  }
  template <class T>
  RUSH_HD T operator()(T a, T b) const {
    if (std::isinf(a) && a == b) return a;
    return std::fmax(a, b) + std::log1p(std::exp(-std::abs(a - b))) + (a != a ? a : T(0)) + (b != b ? b : T(0));
  }
};

struct LogAddExp2 {
  template <class T>
  RUSH_HD T operator()(T a, T b) const {
    constexpr T kLog2E = T(1.44269504088896340736);
    if (std::isinf(a) && a == b) return a;
    return std::fmax(a, b) + std::log1p(std::exp2(-std::abs(a - b))) * kLog2E + (a != a ? a : T(0)) +
           (b != b ? b : T(0));
  }
};

struct Gcd {
  template <class T>
  RUSH_HD T operator()(T a, T b) const {
    while (b != 0) {
      const T rest = Fmod()(a, b);
      a = b;
      b = rest;
    }
    return a < 0 ? wrap_sub(T(0), a) : a;
  }
};

struct Lcm {
  template <class T>
  RUSH_HD T operator()(T a, T b) const {
    const T divisor = Gcd()(a, b);
    if (divisor == 0) return 0;
    const T product = wrap_mul(DivTrunc<T>()(a, divisor), b);
    return product < 0 ? wrap_sub(T(0), product) : product;
  }
};

#ifndef __CUDACC_RTC__
using BinaryTable =
    Table<Row<kernels::mul, Mul, AllTypes, kEveryLayout>, Row<kernels::div, Div, FloatTypes, kEveryLayout>>;

using PowerTable = Table<
    Row<kernels::pow, Pow, NumberTypes, kVectors | kSlow>, Row<kernels::atan2, Atan2, RealFloatTypes, kVectors | kSlow>,
    Row<kernels::copysign, Copysign, RealFloatTypes>, Row<kernels::gcd, Gcd, IntegerTypes, kSlow>,
    Row<kernels::heaviside, Heaviside, RealAndBoolTypes>, Row<kernels::hypot, Hypot, RealFloatTypes, kSlow>,
    Row<kernels::lcm, Lcm, IntegerTypes, kSlow>, Row<kernels::nextafter, OfStorage<Nextafter>, RealFloatTypes, kSlow>,
    Row<kernels::special_xlog1py, Xlog1py, RealFloatTypes, kSlow>, Row<kernels::xlogy, Xlogy, RealFloatTypes, kSlow>>;

using LogAddExpTable = Table<Row<kernels::logaddexp, LogAddExp, FloatTypes, kSlow>,
                             Row<kernels::logaddexp2, LogAddExp2, RealFloatTypes, kSlow>>;
#endif

}  // namespace rush::functors
