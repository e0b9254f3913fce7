// Functions of complex numbers: exp, sqrt, pow, atanh and so on, found by argument-dependent lookup as for real
// numbers. The CPU asks libm, out of line in complex_math.cpp, because <complex> would bring <sstream> here and no
// caller would gain from inlining. A GPU asks its own library. Branch cuts are those of C99 Annex G on both.
#pragma once

#include <cmath>

#include "core/complex.h"
#include "core/complex_functions.h"
#include "core/macros.h"

namespace rush {

namespace detail::libm {
#define RUSH_DECLARE_FUNCTION(name)             \
  complex<float> name(const complex<float>& z); \
  complex<double> name(const complex<double>& z);
RUSH_FORALL_COMPLEX_FUNCTIONS(RUSH_DECLARE_FUNCTION)
#undef RUSH_DECLARE_FUNCTION

complex<float> pow(const complex<float>& base, const complex<float>& exponent);
complex<double> pow(const complex<double>& base, const complex<double>& exponent);
}  // namespace detail::libm

}  // namespace rush

#ifdef RUSH_DEVICE_COMPLEX_MATH
#include RUSH_DEVICE_COMPLEX_MATH
#endif

namespace rush {

#ifdef RUSH_DEVICE_CODE
#define RUSH_COMPLEX_LIBRARY ::rush::device_code
#else
#define RUSH_COMPLEX_LIBRARY ::rush::detail::libm
#endif

#define RUSH_DEFINE_FUNCTION(name)               \
  template <class T>                             \
  RUSH_HD complex<T> name(const complex<T>& z) { \
    return RUSH_COMPLEX_LIBRARY::name(z);        \
  }
RUSH_FORALL_COMPLEX_FUNCTIONS(RUSH_DEFINE_FUNCTION)
#undef RUSH_DEFINE_FUNCTION

/// base^exponent on the principal branch. As in Python, anything to the power 0 is 1; libm would answer NaN for 0^0.
template <class T>
RUSH_HD complex<T> pow(const complex<T>& base, const complex<T>& exponent) {
  if (exponent == T(0)) return T(1);
  if (base == T(0) && exponent.real() > 0) return T(0);
  return RUSH_COMPLEX_LIBRARY::pow(base, exponent);
}
#undef RUSH_COMPLEX_LIBRARY

template <class T>
RUSH_HD complex<T> pow(const complex<T>& base, T exponent) {
  return pow(base, complex<T>(exponent));
}

template <class T>
RUSH_HD complex<T> pow(T base, const complex<T>& exponent) {
  return pow(complex<T>(base), exponent);
}

/// |z|, without overflow in the squares.
template <class T>
RUSH_HD T abs(const complex<T>& z) {
  return std::hypot(z.real(), z.imag());
}

/// The angle in [-pi, pi], in radians.
template <class T>
RUSH_HD T arg(const complex<T>& z) {
  return std::atan2(z.imag(), z.real());
}

/// The number with magnitude `radius` at the angle `theta`, in radians.
template <class T>
RUSH_HD complex<T> polar(T radius, T theta = T()) {
  return {radius * std::cos(theta), radius * std::sin(theta)};
}

template <class T>
RUSH_HD complex<T> log2(const complex<T>& z) {
  constexpr T kLog2E = T(1.44269504088896340736);
  const complex<T> natural = log(z);
  return {natural.real() * kLog2E, natural.imag() * kLog2E};
}

template <class T>
RUSH_HD complex<T> exp2(const complex<T>& z) {
  constexpr T kLn2 = T(0.69314718055994530942);
  return exp(complex<T>(z.real() * kLn2, z.imag() * kLn2));
}

/// e^z - 1, accurate near 0: the real part e^x cos y - 1 is written expm1(x) cos y - 2 sin^2(y/2).
template <class T>
RUSH_HD complex<T> expm1(const complex<T>& z) {
  const T x = z.real();
  const T y = z.imag();
  const T half_sine = std::sin(y / 2);
  return {std::expm1(x) * std::cos(y) - 2 * half_sine * half_sine, std::exp(x) * std::sin(y)};
}

/// log(1 + z), accurate near 0: log|1 + z| = log1p(2x + x^2 + y^2) / 2 where |z| is small.
template <class T>
RUSH_HD complex<T> log1p(const complex<T>& z) {
  const T x = z.real();
  const T y = z.imag();
  const T angle = std::atan2(y, x + 1);
  if (abs(z) < T(0.5)) return {std::log1p(x * (2 + x) + y * y) / 2, angle};
  return {std::log(std::hypot(x + 1, y)), angle};
}

}  // namespace rush
