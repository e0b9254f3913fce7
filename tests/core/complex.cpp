#include "core/complex.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstring>
#include <limits>
#include <type_traits>
#include <vector>

#include "core/complex_math.h"

namespace {

using rush::complex;
using rush::complex128;
using rush::complex64;
using Reference = std::complex<long double>;

static_assert(std::is_trivial_v<complex64> && std::is_standard_layout_v<complex64>);
static_assert(sizeof(complex64) == sizeof(std::complex<float>) && sizeof(complex128) == sizeof(std::complex<double>));
static_assert(complex64(1, 2) * complex64(3, -1) == complex64(5, 5));
static_assert(2.0 / complex128(1, 1) == complex128(1, -1));

// Widening is implicit; narrowing is not.
static_assert(std::is_convertible_v<complex64, complex128> && std::is_convertible_v<float, complex64>);
static_assert(!std::is_convertible_v<complex128, complex64> && std::is_constructible_v<complex64, complex128>);

template <class T>
Reference widen(const complex<T>& z) {
  return {z.real(), z.imag()};
}

/// The distance to the reference in units of epsilon at the reference's magnitude.
template <class T>
double error_in_epsilons(const complex<T>& z, const Reference& expected) {
  const long double scale = std::max(std::abs(expected), static_cast<long double>(std::numeric_limits<T>::min()));
  return static_cast<double>(std::abs(widen(z) - expected) / scale / std::numeric_limits<T>::epsilon());
}

/// Points in all four quadrants and at several magnitudes, on no branch cut.
template <class T>
std::vector<complex<T>> sample_points() {
  std::vector<complex<T>> points;
  for (const double magnitude : {1e-3, 0.3, 0.9, 1.7, 5.0}) {
    for (int step = 0; step < 12; ++step) {
      const double angle = 0.2 + step * 0.52;
      points.emplace_back(static_cast<T>(magnitude * std::cos(angle)), static_cast<T>(magnitude * std::sin(angle)));
    }
  }
  return points;
}

TEST_CASE_TEMPLATE("complex<T> lies in memory as std::complex<T>", T, float, double) {
  const complex<T> z(1.5, -2);
  std::complex<T> copy;
  std::memcpy(reinterpret_cast<T*>(&copy), &z, sizeof z);
  CHECK(copy == std::complex<T>(1.5, -2));
}

TEST_CASE_TEMPLATE("arithmetic agrees with long double", T, float, double) {
  double worst = 0;
  for (const auto& a : sample_points<T>()) {
    for (const auto& b : sample_points<T>()) {
      worst = std::max(worst, error_in_epsilons(a * b, widen(a) * widen(b)));
      worst = std::max(worst, error_in_epsilons(a / b, widen(a) / widen(b)));
    }
  }
  CHECK(worst < 4);

  complex<T> z(1, 2);
  z += T(1);
  CHECK(z == complex<T>(2, 2));
  z *= complex<T>(0, 1);
  CHECK(z == complex<T>(-2, 2));
  z -= complex<T>(0, 2);
  CHECK(z == T(-2));
  z /= complex<T>(0, 2);
  CHECK(z == complex<T>(0, 1));
  CHECK(z != complex<T>(0, -1));
  CHECK(-z == complex<T>(0, -1));
}

TEST_CASE_TEMPLATE("division neither overflows nor vanishes where the quotient does not", T, float, double) {
  const T huge = std::numeric_limits<T>::max() / 2;
  const T tiny = std::numeric_limits<T>::min() * 2;
  CHECK(complex<T>(huge, huge) / complex<T>(huge, huge) == T(1));
  CHECK(complex<T>(tiny, -tiny) / complex<T>(tiny, -tiny) == T(1));
  CHECK(complex<T>(1, 0) / complex<T>(0, huge) == complex<T>(0, -1 / huge));
  // A divisor below the smallest normal number, whose reciprocal is infinite.
  const T subnormal = std::numeric_limits<T>::denorm_min() * 4;
  CHECK(complex<T>(subnormal, 0) / complex<T>(0, subnormal) == complex<T>(0, -1));
  const complex<T> by_zero = complex<T>(1, -1) / complex<T>(0, 0);
  CHECK(by_zero.real() == std::numeric_limits<T>::infinity());
  CHECK(by_zero.imag() == -std::numeric_limits<T>::infinity());
}

#define CHECK_FUNCTION(name)                                                                                           \
  do {                                                                                                                 \
    INFO(#name);                                                                                                       \
    double worst = 0;                                                                                                  \
    for (const auto& z : sample_points<T>()) worst = std::max(worst, error_in_epsilons(name(z), std::name(widen(z)))); \
    CHECK(worst < 8);                                                                                                  \
  } while (false);

TEST_CASE_TEMPLATE("functions agree with long double", T, float, double){RUSH_FORALL_COMPLEX_FUNCTIONS(CHECK_FUNCTION)}
#undef CHECK_FUNCTION

TEST_CASE_TEMPLATE("functions that the standard library lacks", T, float, double) {
  const Reference one(1);
  const long double ln2 = std::log(2.0L);
  double worst = 0;
  for (const auto& z : sample_points<T>()) {
    worst = std::max(worst, error_in_epsilons(log2(z), std::log(widen(z)) / ln2));
    worst = std::max(worst, error_in_epsilons(exp2(z), std::exp(widen(z) * ln2)));
    worst = std::max(worst, error_in_epsilons(expm1(z), std::exp(widen(z)) - one));
    worst = std::max(worst, error_in_epsilons(log1p(z), std::log(one + widen(z))));
  }
  CHECK(worst < 8);
  // Where 1 + z rounds to 1, both are z.
  const complex<T> small(T(1e-20), T(-2e-20));
  CHECK(expm1(small) == small);
  CHECK(log1p(small) == small);
}

TEST_CASE_TEMPLATE("pow", T, float, double) {
  double worst = 0;
  for (const auto& base : sample_points<T>()) {
    for (const auto& exponent : {complex<T>(2, 0), complex<T>(T(-0.5), 1), complex<T>(0, 3)}) {
      worst = std::max(worst, error_in_epsilons(pow(base, exponent), std::pow(widen(base), widen(exponent))));
    }
    worst = std::max(worst, error_in_epsilons(pow(base, T(1.5)), std::pow(widen(base), 1.5L)));
    worst = std::max(worst, error_in_epsilons(pow(T(1.5), base), std::pow(1.5L, widen(base))));
  }
  CHECK(worst < 64);  // exp(b log a): an error in log a grows with |b log a|
  CHECK(pow(complex<T>(0, 0), complex<T>(0, 0)) == T(1));
  CHECK(pow(complex<T>(0, 0), T(3)) == T(0));
}

TEST_CASE_TEMPLATE("parts, magnitude and angle", T, float, double) {
  const complex<T> z(3, -4);
  CHECK(real(z) == 3);
  CHECK(imag(z) == -4);
  CHECK(conj(z) == complex<T>(3, 4));
  CHECK(abs(z) == 5);
  CHECK(norm(z) == 25);
  const T huge = std::numeric_limits<T>::max() / 2;
  CHECK(std::isfinite(abs(complex<T>(huge, huge))));
  CHECK(arg(complex<T>(-1, 0)) == doctest::Approx(M_PI));
  CHECK(arg(complex<T>(-1, T(-0.0))) == doctest::Approx(-M_PI));
  CHECK(error_in_epsilons(rush::polar(abs(z), arg(z)), widen(z)) < 4);
}

TEST_CASE("branch cuts follow the sign of zero") {
  CHECK(sqrt(complex64(-4, 0.0f)) == complex64(0, 2));
  CHECK(sqrt(complex64(-4, -0.0f)) == complex64(0, -2));
  CHECK(log(complex128(-1, -0.0)).imag() == doctest::Approx(-M_PI));
}

TEST_CASE("conversions between the precisions") {
  const complex128 wide = complex64(0.5f, -1);
  CHECK(wide == complex128(0.5, -1));
  CHECK(complex64(complex128(0.1, 0.2)) == complex64(0.1f, 0.2f));
  CHECK(std::hash<complex64>()(complex64(0.0f, 1)) == std::hash<complex64>()(complex64(-0.0f, 1)));
  CHECK(std::hash<complex64>()(complex64(1, 2)) != std::hash<complex64>()(complex64(2, 1)));
}

}  // namespace
