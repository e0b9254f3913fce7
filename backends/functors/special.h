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
  RUSH_HD static double of(double s, double q) {
    if (s == 1) return kInfinity;
    if (s < 1 || (q < 0 && q != std::floor(q) && s != std::floor(s))) return kNotANumber;
    if (q <= 0 && q == std::floor(q)) return kInfinity;
    if (q > 0 && std::isinf(q)) return s != s ? s : 0;
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
  template <class T>
  RUSH_HD T operator()(T s, T q) const {
    return static_cast<T>(of(static_cast<double>(s), static_cast<double>(q)));
  }
};

// psi^(n)(x) = (-1)^(n+1) n! zeta(n + 1, x).
struct Polygamma {
  int64_t n;
  template <class T>
  RUSH_HD T operator()(T x) const {
    // Reflected: on the left the zeta series passes close by its poles.
    if (n == 1 && x < T(0.5)) {
      const double sine = std::sin(kPi * (static_cast<double>(x) - std::trunc(static_cast<double>(x))));
      return static_cast<T>(kPi * kPi / (sine * sine)) - (*this)(1 - x);
    }
    const T magnitude = std::exp(std::lgamma(static_cast<T>(n) + 1)) * Zeta()(static_cast<T>(n) + 1, x);
    return n % 2 ? magnitude : -magnitude;
  }
};

// A first approximation by M. Giles (Approximating the erfinv function, GPU Computing Gems 2, 2011), then Newton's
// method on erf, or near 1, where erf(x) - y cancels, on erfc.
struct Erfinv {
  RUSH_HD static double approximate(double y) {
    double w = -std::log((1 - y) * (1 + y));
    if (w < 5) {
      w -= 2.5;
      return y * (((((((((2.81022636e-08 * w + 3.43273939e-07) * w - 3.5233877e-06) * w - 4.39150654e-06) * w +
                       0.00021858087) *
                          w -
                      0.00125372503) *
                         w -
                     0.00417768164) *
                        w +
                    0.246640727) *
                       w +
                   1.50140941));
    }
    w = std::sqrt(w) - 3;
    return y * (((((((((-0.000200214257 * w + 0.000100950558) * w + 0.00134934322) * w - 0.00367342844) * w +
                     0.00573950773) *
                        w -
                    0.0076224613) *
                       w +
                   0.00943887047) *
                      w +
                  1.00167406) *
                     w +
                 2.83297682));
  }
  template <class T>
  RUSH_HD T operator()(T value) const {
    const double y = value, size = std::abs(y);
    if (size >= 1) {
      return size == 1 ? std::copysign(std::numeric_limits<T>::infinity(), value) : std::numeric_limits<T>::quiet_NaN();
    }
    constexpr double kSlope = 1.12837916709551257390;  // 2 / sqrt(pi)
    double x = approximate(size);
    for (int step = 0; step < (sizeof(T) < 8 ? 1 : 3); ++step) {
      const double error = size < 0.5 ? std::erf(x) - size : (1 - size) - std::erfc(x);
      x -= error / (kSlope * std::exp(-x * x));
    }
    return static_cast<T>(std::copysign(x, y));
  }
};

template <class T>
struct Logit {
  T eps;  // negative: no clamping
  RUSH_HD T operator()(T a) const {
    if (eps >= 0) a = a < eps ? eps : a > 1 - eps ? 1 - eps : a;
    return std::log(a / (1 - a));
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
using SpecialTable =
    Table<Row<kernels::erfc, Erfc, RealFloatTypes, kSlow>, Row<kernels::erfinv, Erfinv, RealFloatTypes, kSlow>,
          Row<kernels::lgamma, Lgamma, RealFloatTypes, kSlow>, Row<kernels::digamma, Digamma, RealFloatTypes, kSlow>,
          Row<kernels::polygamma, Polygamma, RealFloatTypes, kSlow>,
          Row<kernels::special_zeta, Zeta, RealFloatTypes, kSlow>,
          Row<kernels::logit, With<Logit>, RealFloatTypes, kSlow>,
          Row<kernels::logit_backward, With<LogitBackward>, RealFloatTypes, kSlow>>;
#endif

}  // namespace rush::functors
