// The vectorised functions of doubles against the C library in long double, and in double for special values.
#include "backends/cpu/pointwise/double_vec_math.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "backends/cpu/pointwise/vec_math.h"

namespace {

using rush::cpu::DoubleVec;
constexpr double kInfinite = std::numeric_limits<double>::infinity();

double lane(DoubleVec v, int i) {
  double lanes[DoubleVec::kSize];
  v.store(lanes);
  return lanes[i];
}

// How far `got` is from `want` in units of the last place of a double there; zeros must have the same sign.
double double_ulps(double got, long double want) {
  const auto rounded = static_cast<double>(want);
  if (std::isnan(got) || std::isnan(rounded)) return std::isnan(got) == std::isnan(rounded) ? 0 : 1e9;
  if (got == rounded) return std::signbit(got) == std::signbit(rounded) ? 0 : 1e9;
  if (std::isinf(got) || std::isinf(rounded)) return 1e9;
  const double unit = std::nextafter(std::abs(rounded), kInfinite) - std::abs(rounded);
  return static_cast<double>(std::abs(got - want) / unit);
}

struct DoubleFunction {
  const char* name;
  DoubleVec (*fn)(DoubleVec);
  long double (*reference)(long double);
  double (*special)(double);
};
#define ROW(name) \
  { #name, rush::cpu::name, std::name, std::name }
const DoubleFunction kDoubleFunctions[] = {ROW(exp),   ROW(exp2), ROW(expm1), ROW(log),  ROW(log2),  ROW(log10),
                                           ROW(log1p), ROW(sin),  ROW(cos),   ROW(tan),  ROW(asin),  ROW(acos),
                                           ROW(atan),  ROW(sinh), ROW(cosh),  ROW(tanh), ROW(asinh), ROW(acosh),
                                           ROW(atanh), ROW(erf),  ROW(erfc)};
#undef ROW

struct PairOfDoubles {
  const char* name;
  DoubleVec (*fn)(DoubleVec, DoubleVec);
  long double (*reference)(long double, long double);
};
const PairOfDoubles kPairs[] = {{"pow", rush::cpu::pow, std::pow},
                                {"atan2", rush::cpu::atan2, std::atan2},
                                {"hypot", rush::cpu::hypot, std::hypot}};

const double kSpecial[] = {
    0.0,       -0.0,       1.0,    -1.0,   2.0,     -2.0,   0.5,     -0.5,   3.0,
    -3.0,      1e308,      -1e308, 1e-308, -1e-308, 5e-324, -5e-324, 1e-300, 1e22,
    kInfinite, -kInfinite, 709.7,  710.0,  -745.0,  -746.0, 0.1,     1.001,  std::numeric_limits<double>::quiet_NaN()};

}  // namespace

TEST_CASE("vectors of doubles: elementary functions are accurate to 4 ulps everywhere") {
  for (const DoubleFunction& f : kDoubleFunctions) {
    CAPTURE(f.name);
    double worst = 0, worst_at = 0;
    // A step that is no multiple of a power of two reaches all exponents and many fractions.
    for (uint64_t bits = 0; bits < 0xffff000000000000; bits += 7919ull * 104729 * 74219) {
      const auto x = std::bit_cast<double>(bits);
      const double error = double_ulps(lane(f.fn(DoubleVec(x)), 0), f.reference(x));
      if (error > worst) {
        worst = error;
        worst_at = x;
      }
    }
    CAPTURE(worst_at);
    CHECK(worst <= 4);
  }
}

TEST_CASE("vectors of doubles: limits and special values, in any lane") {
  for (const double x : kSpecial) {
    CAPTURE(x);
    for (int i = 0; i < DoubleVec::kSize; i += DoubleVec::kSize - 1) {
      double lanes[DoubleVec::kSize];
      std::fill_n(lanes, DoubleVec::kSize, 0.25);
      lanes[i] = x;
      for (const DoubleFunction& f : kDoubleFunctions) {
        CAPTURE(f.name);
        const DoubleVec result = f.fn(DoubleVec::load(lanes));
        CHECK(double_ulps(lane(result, i), f.special(x)) <= 4);
        CHECK(double_ulps(lane(result, DoubleVec::kSize - 1 - i), lane(f.fn(DoubleVec(0.25)), 0)) == 0);
      }
    }
  }
}

TEST_CASE("vectors of doubles: pow and atan2") {
  for (const PairOfDoubles& f : kPairs) {
    CAPTURE(f.name);
    for (const double a : kSpecial) {
      for (const double b : kSpecial) {
        CAPTURE(a);
        CAPTURE(b);
        // In double, as what is too small for one but not for a long double is zero.
        const auto want = static_cast<double>(f.reference(a, b));
        CHECK(double_ulps(lane(f.fn(DoubleVec(a), DoubleVec(b)), 0), want) <= 4);
      }
    }
    std::mt19937_64 random(1);
    for (int i = 0; i < 20000; ++i) {
      const double a = std::exp(std::uniform_real_distribution<>(-20, 20)(random));
      const double b = std::uniform_real_distribution<>(-30, 30)(random);
      CAPTURE(a);
      CAPTURE(b);
      CHECK(double_ulps(lane(f.fn(DoubleVec(a), DoubleVec(b)), 0), f.reference(a, b)) <= 4);
    }
  }
}

TEST_CASE("vectors of doubles: fmod is exact, whatever stands beside a number") {
  std::mt19937_64 random(2);
  const auto check = [](double a, double b, double beside) {
    CAPTURE(a);
    CAPTURE(b);
    double lanes[DoubleVec::kSize];
    std::fill_n(lanes, DoubleVec::kSize, beside);
    lanes[1] = a;
    const double got = lane(fmod(DoubleVec::load(lanes), DoubleVec(b)), 1), want = std::fmod(a, b);
    CHECK(double_ulps(got, std::isinf(a / b) ? std::numeric_limits<double>::quiet_NaN() : want) == 0);
  };
  for (const double a : kSpecial) {
    for (const double b : kSpecial) check(a, b, 1.5);
  }
  for (int i = 0; i < 20000; ++i) {
    const auto number = [&] {
      const double size = std::exp(std::uniform_real_distribution<>(-18, 18)(random));
      return i % 3 == 0 ? std::floor(size) * (i % 2 ? 1 : -1) : size;
    };
    const double a = number(), b = number() + 0.25 * (i % 5);
    check(a, b, i % 7 == 0 ? 1e300 : 3);
    check(b * std::floor(a), b, 3);  // a multiple, or nearly
  }
}

TEST_CASE("vectors of doubles: what is exact in double is exact") {
  for (int k = -1074; k < 1024; ++k) {
    CHECK(lane(exp2(DoubleVec(k)), 0) == std::ldexp(1.0, k));
    CHECK(lane(log2(DoubleVec(std::ldexp(1.0, k))), 0) == k);
  }
  for (int base = 2; base < 40; ++base) {
    double power = 1;
    for (int exponent = 0; exponent < 10; ++exponent, power *= base) {
      CHECK(lane(pow(DoubleVec(base), DoubleVec(exponent)), 0) == power);
    }
  }
}

TEST_CASE("vectors of doubles: a number's result does not depend on its position") {
  std::vector<double> x(21), whole(21), one(1);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<double>(i) * 0.3 - 4;
  struct Sine {
    DoubleVec operator()(DoubleVec v) const { return sin(v); }
  } functor;
  const auto run = [&](const double* in, double* out, int64_t n) {
    const void* inputs[] = {in};
    rush::cpu::vec_block<double, Sine, 1>(&functor, out, inputs, n);
  };
  run(x.data(), whole.data(), 21);
  for (size_t i = 0; i < x.size(); ++i) {
    run(&x[i], one.data(), 1);
    CHECK(one[0] == whole[i]);
  }
}
