// The quantile of the normal distribution, and the incomplete gamma functions.
#pragma once
#include <cmath>

#include "backends/functors/special.h"

namespace rush::functors {

// The x that a normal number is below with probability y: in the tails a first approximation (Abramowitz and Stegun
// 26.2.23), then Newton's method on the logarithm of the probability. To the precision of float, erfinv's
// approximation, as far as that reaches.
struct Ndtri {
  template <class T>
  RUSH_HD T operator()(T y) const {
    if constexpr (sizeof(T) < 8) {
      if (y > T(1e-7) && y < 1) return T(kSqrtTwo) * Erfinv::approximate(2 * y - 1, -std::log(4 * y * (1 - y)));
    }
    return static_cast<T>(of(static_cast<double>(y)));
  }

  RUSH_HD static double of(double y) {
    if (!(y > 0 && y < 1)) return y == 0 ? -kInfinity : y == 1 ? kInfinity : kNotANumber;
    if (y > 0.25 && y < 0.75) return kSqrtTwo * Erfinv()(2 * y - 1);
    const double p = y < 0.5 ? y : 1 - y, t = std::sqrt(-2 * std::log(p));
    double x = t - polynomial(t, 0.010328, 0.802853, 2.515517) / polynomial(t, 0.001308, 0.189269, 1.432788, 1);
    for (int step = 0; step < 5; ++step) {
      const double tail = std::erfc(x / kSqrtTwo) / 2, density = std::exp(-x * x / 2) / (kSqrtTwo * kSqrtPi);
      const double change = std::log(tail / p) * tail / density;
      x += change;
      if (std::abs(change) < 1e-9 * x) break;  // the next would be below the rounding
    }
    return y < 0.5 ? -x : x;
  }
};

// Note [Incomplete gamma functions]
// P(a, x) is the integral of t^(a - 1) e^-t from 0 to x over gamma(a), Q = 1 - P. Near x = a, for a > 20, N. Temme's
// uniform expansion (DLMF 8.12); below a, or 1, a power series for P (8.11.4); above, a continued fraction for Q
// (8.9.2). The smaller of P and Q is computed, except that for x < 1.1 and a small a, Q has a series of its own
// (8.7.3). The regions are those of PyTorch and SciPy. All in double, for float32 as well.
namespace incomplete_gamma {

// log(1 + u) - u without cancellation, for |u| up to 1/2.
RUSH_HD inline double log1p_minus(double u) {
  double power = u, sum = 0;
  for (int n = 2; n < 100; ++n) {
    power *= -u;
    const double term = power / n;
    sum += term;
    if (std::abs(term) <= 1e-17 * std::abs(sum)) break;
  }
  return sum;
}

// x^a e^-x / gamma(a + 1).
RUSH_HD inline double prefix(double a, double x) {
  if (a < 10) {
    const double half = std::exp(-x / 2);  // e^-x alone would underflow first
    return std::pow(x, a) * half / std::tgamma(a + 1) * half;
  }
  // gamma(a + 1) = sqrt(2 pi a) (a / e)^a e^correction, by Stirling's series.
  const double z = 1 / (a * a);
  const double correction =
      polynomial(z, 1. / 156, -691. / 360360, 1. / 1188, -1. / 1680, 1. / 1260, -1. / 360, 1. / 12) / a;
  const double u = (x - a) / a;
  const double exponent = std::abs(u) > 0.5 ? std::log(x / a) - u : log1p_minus(u);
  return std::exp(a * exponent - correction) / std::sqrt(2 * kPi * a);
}

RUSH_HD inline double lower_series(double a, double x) {
  double term = 1, sum = 1;
  for (double n = a + 1; term > 1e-17 * sum && n < a + 5000; n += 1) sum += term *= x / n;
  return sum * prefix(a, x);
}

RUSH_HD inline double upper_series(double a, double x) {
  double power = 1, sum = 0;
  for (int n = 1; n < 2000; ++n) {
    power *= -x / n;
    const double term = power / (a + n);
    sum += term;
    if (std::abs(term) <= 1e-17 * std::abs(sum)) break;
  }
  const double log_x = std::log(x);
  return -std::expm1(a * log_x - std::lgamma(1 + a)) - std::exp(a * log_x - std::lgamma(a)) * sum;
}

// Lentz's method for 1 / (x + 1 - a - 1 (1 - a) / (x + 3 - a - 2 (2 - a) / (x + 5 - a - ...))).
RUSH_HD inline double upper_fraction(double a, double x) {
  constexpr double kTiny = 1e-300;
  double b = x + 1 - a, c = 1 / kTiny, d = 1 / b, fraction = d;
  for (int n = 1; n < 5000; ++n) {
    const double numerator = -n * (n - a);
    b += 2;
    d = numerator * d + b;
    if (std::abs(d) < kTiny) d = kTiny;
    c = b + numerator / c;
    if (std::abs(c) < kTiny) c = kTiny;
    d = 1 / d;
    fraction *= c * d;
    if (std::abs(c * d - 1) < 1e-16) break;
  }
  return fraction * a * prefix(a, x);
}

// Q, or P if `lower`: erfc(+-eta sqrt(a / 2)) / 2 +- e^(-a eta^2 / 2) / sqrt(2 pi a) sum_k C_k(eta) a^-k, where
// eta^2 / 2 = u - log(1 + u), u = (x - a) / a. The C_k are Taylor series, of as many terms as double needs.
RUSH_HD inline double uniform(double a, double x, bool lower) {
  const double u = (x - a) / a, half_square = -log1p_minus(u);
  const double eta = std::copysign(std::sqrt(2 * half_square), u);
  const double c[] = {
      polynomial(eta, 9.14769958223679e-10, -4.382036018453353e-09, 1.0261809784240309e-08, 6.707853543401498e-09,
                 -1.7665952736826078e-07, 8.296711340953087e-07, -1.85406221071516e-06, -2.1854485106799924e-06,
                 3.919263178522438e-05, -0.0001787551440329218, 0.0003527336860670194, 0.0011574074074074073,
                 -0.014814814814814815, 0.08333333333333333, -0.3333333333333333),
      polynomial(eta, 1.1951628599778148e-08, -5.752545603517705e-08, 1.378633446915721e-07, 4.647127802807434e-09,
                 -1.6120900894563446e-06, 7.64916091608111e-06, -1.8098550334489977e-05, -4.018775720164609e-07,
                 0.00020576131687242798, -0.0009902263374485596, 0.0026455026455026454, -0.003472222222222222,
                 -0.001851851851851852),
      polynomial(eta, 1.4280614206064242e-07, -6.298992138380055e-07, 1.3721957309062932e-06, 3.423578734096138e-08,
                 -1.2760635188618728e-05, 5.2923448829120125e-05, -0.00010736653226365161, 2.0093878600823047e-06,
                 0.0007716049382716049, -0.0026813271604938273, 0.004133597883597883),
      polynomial(eta, 1.4230900732435883e-06, -5.6749528269915965e-06, 1.1082654115347302e-05, -2.396505113867297e-07,
                 -7.561801671883977e-05, 0.00026772063206283885, -0.0004691894943952557, 0.00022947209362139917,
                 0.0006494341563786008),
      polynomial(eta, 1.1375726970678419e-05, -3.968365047179435e-05, 6.641498215465122e-05, -1.4638452578843418e-06,
                 -0.0002990724803031902, 0.0007840392217200666, -0.0008618882909167117),
      polynomial(eta, -2.291481176508095e-06, 8.018470256334202e-06, -1.3594048189768693e-05, 1.419062920643967e-07,
                 6.797780477937208e-05, -0.00019932570516188847, 0.0002772753244959392, -6.972813758365858e-05,
                 -0.00033679855336635813),
      polynomial(eta, -1.8329116582843375e-05, 5.61168275310625e-05, -8.153969367561969e-05, 7.902353232660328e-07,
                 0.0002708782096718045, -0.0005921664373536939, 0.0005313079364639922),
      polynomial(eta, -0.00010976582244684731, 0.0002812695154763237, -0.00033493161081142234, 5.171790908260592e-05,
                 0.00034436760689237765),
      polynomial(eta, -0.000438297098541721, 0.0008394987206720873, -0.0006526239185953094),
      -0.0005967612901927463};
  double sum = 0;
  for (int k = 9; k >= 0; --k) sum = sum / a + c[k];
  const double sign = lower ? -1 : 1;
  const double rest = std::exp(-a * half_square) * sum / std::sqrt(2 * kPi * a);
  return std::erfc(sign * eta * std::sqrt(a / 2)) / 2 + sign * rest;
}

RUSH_HD inline double of(double a, double x, bool lower) {
  if (!(a >= 0 && x >= 0) || (a == 0 && x == 0) || (std::isinf(a) && std::isinf(x))) return kNotANumber;
  if (a == 0 || std::isinf(x)) return lower ? 1 : 0;
  if (x == 0 || std::isinf(a)) return lower ? 0 : 1;
  const double distance = std::abs(x - a) / a;
  if (a > 20 && distance < (a < 200 ? 0.3 : 4.5 / std::sqrt(a))) return uniform(a, x, lower);
  if (x > 1.1 && x >= a) return lower ? 1 - upper_fraction(a, x) : upper_fraction(a, x);
  const bool small = x <= 1.1 && !(x <= 0.5 ? -0.4 / std::log(x) < a : x * 1.1 < a);
  if (!lower && small) return upper_series(a, x);
  return lower ? lower_series(a, x) : 1 - lower_series(a, x);
}

}  // namespace incomplete_gamma

template <bool lower>
struct IncompleteGamma {
  template <class T>
  RUSH_HD T operator()(T a, T x) const {
    return static_cast<T>(incomplete_gamma::of(static_cast<double>(a), static_cast<double>(x), lower));
  }
};

#ifndef __CUDACC_RTC__
using IncompleteGammaTable = Table<Row<kernels::igamma, IncompleteGamma<true>, RealFloatTypes, kSlow>,
                                   Row<kernels::igammac, IncompleteGamma<false>, RealFloatTypes, kSlow>,
                                   Row<kernels::special_ndtri, Ndtri, RealFloatTypes, kSlow>>;
#endif

}  // namespace rush::functors
