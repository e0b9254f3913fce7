// Special functions: digamma, the zeta function, polygamma, the inverse error function, logit.
#pragma once
#include <cmath>
#include <cstdint>
#include <limits>

#include "backends/functors/bessel.h"
#include "backends/functors/unary.h"

namespace rush::functors {

// psi(x) = ln x - 1/(2x) - sum B_2k / (2k x^2k), used where x >= 10; below, psi(x) = psi(x + 1) - 1/x, and for
// negative x the reflection psi(x) = psi(1 - x) - pi / tan(pi x). Abramowitz and Stegun, 6.3.
struct Digamma {
  template <class T>
  RUSH_HD T operator()(T x) const {
    if (x == 0) return std::copysign(std::numeric_limits<T>::infinity(), -x);
    if (x < 0) {
      if (x == std::trunc(x)) return std::numeric_limits<T>::quiet_NaN();
      // Of the fraction, in double: tan(pi x) loses all digits of a large x.
      const double fraction = x - std::trunc(x);
      return (*this)(1 - x) - static_cast<T>(kPi / std::tan(kPi * fraction));
    }
    T shift = 0;
    for (; x < 10; x += 1) shift -= 1 / x;
    const T z = 1 / (x * x);
    const T series =
        z * (T(1. / 12) -
             z * (T(1. / 120) -
                  z * (T(1. / 252) - z * (T(1. / 240) - z * (T(1. / 132) - z * (T(691. / 32760) - z * T(1. / 12)))))));
    return shift + std::log(x) - T(0.5) / x - series;
  }
};

// The Hurwitz zeta function sum_k (q + k)^-s by Euler's and Maclaurin's formula: ten terms, then the integral and
// corrections B_2j / (2j)! s (s+1) ... (s + 2j - 2) (q + 10)^-(s + 2j - 1). Infinite at s = 1 and at the poles, NaN
// where s < 1 or a power of a negative number is not real.
struct Zeta {
  // For a q above 0.
  RUSH_HD static double of_positive(double s, double q) {
    double sum = 0, term = 0;
    for (int k = 0; k < 10 || q < 10; ++k, q += 1) {
      sum += term = std::pow(q, -s);
      if (std::abs(term) < 1e-17 * std::abs(sum)) return sum;
    }
    const double last = std::pow(q, -s);
    sum += last * q / (s - 1) + last / 2;
    // B_2j / (2j)!
    const double bernoulli[] = {1. / 12,
                                -1. / 720,
                                1. / 30240,
                                -1. / 1209600,
                                1. / 47900160,
                                -5.2841901386874932e-10,
                                1.3382536530684679e-11,
                                -3.3896802963225829e-13};
    double rising = s, power = last / q;
    for (int j = 0; j < 8; ++j) {
      const double correction = bernoulli[j] * rising * power;
      sum += correction;
      if (std::abs(correction) < 1e-17 * std::abs(sum)) return sum;
      rising *= (s + 2 * j + 1) * (s + 2 * j + 2);
      power /= q * q;
    }
    return sum;
  }

  RUSH_HD static double of(double s, double q) {
    if (s == 1) return kInfinity;
    if (s < 1 || (q < 0 && q != std::floor(q) && s != std::floor(s))) return kNotANumber;
    if (q <= 0 && q == std::floor(q)) return kInfinity;
    if (q > 0 && std::isinf(q)) return s != s ? s : 0;
    if (q > 0 || q != q) return of_positive(s, q);
    // The terms below 0 are those of two sums above it, whose signs s, an integer, decides.
    const double above = q - std::floor(q), below = of_positive(s, 1 - above) - of_positive(s, 1 - q);
    return of_positive(s, above) + (std::fmod(s, 2) == 0 ? below : -below);
  }

  template <class T>
  RUSH_HD T operator()(T s, T q) const {
    return static_cast<T>(of(static_cast<double>(s), static_cast<double>(q)));
  }
};

// psi^(n)(x) = (-1)^(n+1) n! zeta(n + 1, x). The first has a series of its own, without powers: psi'(x) = 1/x +
// 1/(2x^2) + sum B_2k / x^(2k+1) for a large x; below, psi'(x) = psi'(x + 1) + 1/x^2. Abramowitz and Stegun, 6.4.
struct Polygamma {
  int64_t n;
  template <class T>
  RUSH_HD static T first(T x) {
    T sum = 0;
    for (const T large = sizeof(T) < 8 ? 5 : 10; x < large; x += 1) sum += 1 / (x * x);
    const T z = 1 / (x * x);
    const T series =
        z * (T(1. / 6) -
             z * (T(1. / 30) -
                  z * (T(1. / 42) - z * (T(1. / 30) - z * (T(5. / 66) - z * (T(691. / 2730) - z * T(7. / 6)))))));
    return sum + (1 + T(0.5) / x + series) / x;
  }
  template <class T>
  RUSH_HD T operator()(T x) const {
    // Reflected: on the left the zeta series passes close by its poles.
    if (n == 1 && x < T(0.5)) {
      const double sine = std::sin(kPi * (static_cast<double>(x) - std::trunc(static_cast<double>(x))));
      return static_cast<T>(kPi * kPi / (sine * sine)) - first(1 - x);
    }
    if (n == 1) return first(x);
    const T magnitude = std::exp(std::lgamma(static_cast<T>(n) + 1)) * Zeta()(static_cast<T>(n) + 1, x);
    return n % 2 ? magnitude : -magnitude;
  }
};

// double, or a vector of them.
template <class T>
inline constexpr bool is_double = std::is_same_v<T, double>;
template <class T>
requires(sizeof(typename T::Bits) == 8) inline constexpr bool is_double<T> = true;

// An approximation to the precision of float by M. Giles (Approximating the erfinv function, GPU Computing Gems 2,
// 2011), then for double Newton's method on erf, or near 1, where erf(x) - y cancels, on erfc. A GPU, whose threads
// would compute both of each, has a function for double that is as exact.
struct Erfinv {
  // w = -log((1 - y) (1 + y)), up to 16.
  template <class T>
  RUSH_HD static T approximate(T y, T w) {
    using std::sqrt;
    const T inner = polynomial(w - T(2.5), 2.81022636e-08, 3.43273939e-07, -3.5233877e-06, -4.39150654e-06,
                               0.00021858087, -0.00125372503, -0.00417768164, 0.246640727, 1.50140941);
    const T outer = polynomial(sqrt(w) - T(3), -0.000200214257, 0.000100950558, 0.00134934322, -0.00367342844,
                               0.00573950773, -0.0076224613, 0.00943887047, 1.00167406, 2.83297682);
    return y * select(w < T(5), inner, outer);
  }
  // Of one number, not both are computed.
  RUSH_HD static double error(double x, double size) {
    return size < 0.5 ? std::erf(x) - size : (1 - size) - std::erfc(x);
  }
  template <class Vector>
  static Vector error(Vector x, Vector size) {
    return select(size < Vector(0.5), erf(x) - size, (Vector(1) - size) - erfc(x));
  }
  template <class T>
  RUSH_HD T operator()(T y) const {
    using std::abs, std::copysign, std::exp, std::log;
#ifdef __CUDA_ARCH__
    if constexpr (is_double<T>) return ::erfinv(y);
#endif
    const T size = abs(y);
    T x = approximate(size, -log((T(1) - size) * (T(1) + size)));
    if constexpr (is_double<T>) {
      constexpr double kSlope = 1.12837916709551257390;  // 2 / sqrt(pi)
      for (int step = 0; step < 3; ++step) x = x - error(x, size) / (T(kSlope) * exp(-x * x));
    }
    const T beyond = select(size == T(1), T(kInfinity), T(kNotANumber));
    return copysign(select(size < T(1), x, beyond), y);
  }
};

template <class T>
struct Logit {
  T eps;  // negative: no clamping
  template <class V>
  RUSH_HD V operator()(V a) const {
    using std::log;
    if (eps >= 0) a = select(a < V(eps), V(eps), select(a > V(1 - eps), V(1 - eps), a));
    return log(a / (V(1) - a));
  }
};

template <class T>
struct LogitBackward {  // g / (x (1 - x)); NaN outside [0, 1], or 0 outside the clamped range
  T eps;
  RUSH_HD T operator()(T grad, T a) const {
    const T low = eps < 0 ? T(0) : eps, high = 1 - low;
    if (a < low || a > high) return eps < 0 ? std::numeric_limits<T>::quiet_NaN() : T(0);
    return grad / (a * (1 - a));
  }
};

#ifndef __CUDACC_RTC__
using SpecialTable = Table<Row<kernels::erfc, Erfc, RealFloatTypes, kVectors | kSlow>,
                           Row<kernels::erfinv, Erfinv, RealFloatTypes, kVectors | kSlow>,
                           Row<kernels::lgamma, Lgamma, RealFloatTypes, kVectors | kSlow>,
                           Row<kernels::digamma, Digamma, RealFloatTypes, kSlow>,
                           Row<kernels::polygamma, Polygamma, RealFloatTypes, kSlow>,
                           Row<kernels::special_zeta, Zeta, RealFloatTypes, kSlow>,
                           Row<kernels::logit, With<Logit>, RealFloatTypes, kVectors | kSlow>,
                           Row<kernels::logit_backward, With<LogitBackward>, RealFloatTypes, kSlow>>;
#endif

}  // namespace rush::functors
