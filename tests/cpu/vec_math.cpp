// The vectorised functions of floats against the C library in double, over the whole range of floats.
#include "backends/cpu/pointwise/vec_math.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace {

using rush::cpu::Vec;
constexpr float kInf = std::numeric_limits<float>::infinity();

Vec eval(Vec (*fn)(Vec), float x) { return fn(Vec(x)); }
float first(Vec v) {
  float lanes[Vec::kSize];
  v.store(lanes);
  return lanes[0];
}

// How far `got` is from `want` in units of the last place of a float there.
double ulps(float got, double want) {
  const auto rounded = static_cast<float>(want);
  if (std::isnan(got) || std::isnan(rounded)) return std::isnan(got) == std::isnan(rounded) ? 0 : 1e9;
  if (got == rounded) return 0;
  if (std::isinf(got) || std::isinf(rounded)) {
    // Infinity stands for the number after the largest.
    const double most = std::numeric_limits<float>::max();
    return std::abs(want) > most * (1 - 1e-6) && std::abs(got) >= most * (1 - 1e-6f) ? 1 : 1e9;
  }
  const double unit = std::nextafter(std::abs(rounded), kInf) - std::abs(rounded);
  return std::abs(got - want) / unit;
}

struct Function {
  const char* name;
  Vec (*fn)(Vec);
  double (*reference)(double);
  double allowed;  // ulps
};

const Function kFunctions[] = {
    {"exp", rush::cpu::exp, std::exp, 2},
    {"exp2", rush::cpu::exp2, std::exp2, 2},
    {"expm1", rush::cpu::expm1, std::expm1, 3},
    {"log", rush::cpu::log, std::log, 2},
    {"log2", rush::cpu::log2, std::log2, 3},
    {"log10", rush::cpu::log10, std::log10, 3},
    {"log1p", rush::cpu::log1p, std::log1p, 4},
    {"tanh", rush::cpu::tanh, std::tanh, 4},
    {"erf", rush::cpu::erf, std::erf, 4},
    {"atan", rush::cpu::atan, std::atan, 3},
    {"asin", rush::cpu::asin, std::asin, 4},
    {"acos", rush::cpu::acos, std::acos, 4},
    {"sinh", rush::cpu::sinh, std::sinh, 5},
    {"cosh", rush::cpu::cosh, std::cosh, 4},
    {"atanh", rush::cpu::atanh, std::atanh, 5},
    {"erfc", rush::cpu::erfc, std::erfc, 5},
    {"lgamma", rush::cpu::lgamma, std::lgamma, 6},
    {"sqrt", rush::cpu::sqrt<float>, std::sqrt, 0.51},
    {"floor", rush::cpu::floor<float>, std::floor, 0},
};

TEST_CASE("vectors of floats: elementary functions are accurate to a few ulps everywhere") {
  for (const Function& f : kFunctions) {
    CAPTURE(f.name);
    double worst = 0;
    float worst_at = 0;
    // A step that is no multiple of a power of two reaches all exponents and many fractions.
    for (uint32_t bits = 0; bits < 0xffff0000u; bits += 7919) {
      const auto x = std::bit_cast<float>(bits);
      const double error = ulps(first(f.fn(Vec(x))), f.reference(x));
      if (error > worst) {
        worst = error;
        worst_at = x;
      }
    }
    CAPTURE(worst_at);
    CHECK(worst <= f.allowed);
  }
}

TEST_CASE("vectors of floats: sin and cos") {
  for (const bool cosine : {false, true}) {
    double worst = 0;
    for (uint32_t bits = 0; bits < 0xffff0000u; bits += 7919) {
      const auto x = std::bit_cast<float>(bits);
      const float got = first(cosine ? cos(Vec(x)) : sin(Vec(x)));
      const double want = cosine ? std::cos(static_cast<double>(x)) : std::sin(static_cast<double>(x));
      if (std::isnan(want)) {
        CHECK(std::isnan(got));
      } else {
        worst = std::max(worst, std::abs(got - want));
      }
    }
    CHECK(worst < 1.5e-7);
  }
}

TEST_CASE("vectors of floats: tan, and atan2 in every direction") {
  double worst = 0;
  for (uint32_t bits = 0; bits < 0xffff0000u; bits += 7919) {
    const auto x = std::bit_cast<float>(bits);
    worst = std::max(worst, ulps(first(tan(Vec(x))), std::tan(static_cast<double>(x))));
  }
  CHECK(worst <= 8);
  const float sides[] = {0.0f, -0.0f, 1.0f, -1.0f, 0.3f, -0.3f, 1e30f, -1e30f, 1e-40f, kInf, -kInf, NAN};
  for (const float y : sides) {
    for (const float x : sides) {
      CAPTURE(y);
      CAPTURE(x);
      const double want = std::atan2(static_cast<double>(y), static_cast<double>(x));
      const float got = first(atan2(Vec(y), Vec(x)));
      CHECK(ulps(got, want) <= 2);
      if (!std::isnan(want)) CHECK(std::signbit(got) == std::signbit(want));
    }
  }
}

TEST_CASE("vectors of floats: limits and special values") {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const Function& f : kFunctions) {
    CAPTURE(f.name);
    for (const float x : {0.0f, 1.0f, -1.0f, kInf, -kInf, nan, 88.7f, 88.73f, -87.4f, -103.0f, -104.5f, 1e-45f}) {
      CAPTURE(x);
      CHECK(ulps(first(eval(f.fn, x)), f.reference(x)) <= f.allowed);
    }
  }
  CHECK(first(rush::cpu::log2(Vec(8.0f))) == 3.0f);
  CHECK(first(rush::cpu::exp2(Vec(-149.0f))) == std::numeric_limits<float>::denorm_min());
  CHECK(std::signbit(first(rush::cpu::tanh(Vec(-0.0f)))));
}

const float kInteresting[] = {0.0f,  -0.0f,  1.0f,   -1.0f,  2.0f,   -2.0f,   0.5f,
                              3.0f,  -3.0f,  0.1f,   10.0f,  1e-40f, kInf,    -kInf,
                              1e30f, 1e-30f, 0.999f, 1.001f, 127.f,  -149.0f, std::numeric_limits<float>::quiet_NaN()};

TEST_CASE("vectors of floats: pow") {
  for (const float base : kInteresting) {
    for (const float exponent : kInteresting) {
      CAPTURE(base);
      CAPTURE(exponent);
      const double want = std::pow(static_cast<double>(base), static_cast<double>(exponent));
      const float got = first(pow(Vec(base), Vec(exponent)));
      CHECK(ulps(got, want) <= 1);
      if (!std::isnan(want)) CHECK(std::signbit(got) == std::signbit(want));
    }
  }
  for (uint32_t bits = 0x30000000; bits < 0x48000000; bits += 70001) {
    for (const float exponent : {-2.5f, -0.333f, 0.7f, 2.2f, 11.0f}) {
      const auto base = std::bit_cast<float>(bits);
      const double want = std::pow(static_cast<double>(base), static_cast<double>(exponent));
      CHECK(ulps(first(pow(Vec(base), Vec(exponent))), want) <= 1);
    }
  }
}

TEST_CASE("vectors of floats: hypot and nextafter") {
  for (const float a : kInteresting) {
    for (const float b : kInteresting) {
      CAPTURE(a);
      CAPTURE(b);
      CHECK(ulps(first(hypot(Vec(a), Vec(b))), std::hypot(static_cast<double>(a), static_cast<double>(b))) <= 1);
      const float next = first(nextafter(Vec(a), Vec(b))), want = std::nextafter(a, b);
      CHECK((next == want || (std::isnan(next) && std::isnan(want))));
      if (!std::isnan(want)) CHECK(std::signbit(next) == std::signbit(want));
    }
  }
}

TEST_CASE("vectors of floats: what stands beside a number does not change its result") {
  const auto beside = [](float x, float other) {
    float lanes[Vec::kSize];
    std::fill_n(lanes, Vec::kSize, other);
    lanes[0] = x;
    return Vec::load(lanes);
  };
  const auto same = [](Vec a, Vec b) { return std::bit_cast<uint32_t>(first(a)) == std::bit_cast<uint32_t>(first(b)); };
  for (int i = 1; i < 2000; ++i) {
    const float x = static_cast<float>(i) * 0.037f;
    CAPTURE(x);
    for (const float other : {1e30f, -3.5f, kInf, 1e-42f}) {
      CAPTURE(other);
      CHECK(same(sin(beside(x, other)), sin(Vec(x))));
      CHECK(same(cos(beside(x, other)), cos(Vec(x))));
      CHECK(same(tan(beside(x, other)), tan(Vec(x))));
      CHECK(same(lgamma(beside(x, other)), lgamma(Vec(x))));
      CHECK(same(pow(beside(x, other), Vec(1.7f)), pow(Vec(x), Vec(1.7f))));
      CHECK(same(fmod(beside(x, other), Vec(0.3f)), fmod(Vec(x), Vec(0.3f))));
    }
  }
}

TEST_CASE("vectors of floats: a number's result does not depend on its position") {
  std::vector<float> x(37), whole(37), one(1);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i) * 0.3f - 4;
  struct Exp {
    Vec operator()(Vec v) const { return exp(v); }
  } functor;
  const auto run = [&](const float* in, float* out, int64_t n) {
    const void* inputs[] = {in};
    rush::cpu::vec_block<float, Exp, 1>(&functor, out, inputs, n);
  };
  run(x.data(), whole.data(), 37);
  for (size_t i = 0; i < x.size(); ++i) {
    run(&x[i], one.data(), 1);
    CHECK(one[0] == whole[i]);
  }
}

}  // namespace
