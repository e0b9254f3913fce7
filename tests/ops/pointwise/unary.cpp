#include "core/ops/pointwise/unary.h"

#include <cmath>
#include <complex>
#include <limits>

#include "core/ops/pointwise/special.h"
#include "tests/ops/index/index_testing.h"

namespace {

using namespace rush;
using namespace rush::testing;

struct UnaryFunction {
  const UnaryOp& op;
  const UnaryInplaceOp& inplace;
  double (*reference)(double);
  double low, high;      // where it is tested
  bool promotes = true;  // integers become floating point
  double tolerance = 1;  // times the dtype's usual one
};

double pi() { return 3.14159265358979323846; }
double erfinv(double y) {  // bisection
  double low = -6, high = 6;
  for (int i = 0; i < 100; ++i) (std::erf((low + high) / 2) < y ? low : high) = (low + high) / 2;
  return (low + high) / 2;
}
double digamma(double x) {  // central difference of lgamma, far from its poles
  const double h = 1e-5;
  return (std::lgamma(x + h) - std::lgamma(x - h)) / (2 * h);
}

#define FN(name) ops::name, ops::name##_
const UnaryFunction kSmooth[] = {
    {FN(acos), std::acos, -0.9, 0.9},
    {FN(acosh), std::acosh, 1.1, 5},
    {FN(asin), std::asin, -0.9, 0.9},
    {FN(asinh), std::asinh, -3, 3},
    {FN(atan), std::atan, -3, 3},
    {FN(atanh), std::atanh, -0.9, 0.9},
    {FN(cos), std::cos, -6, 6},
    {FN(cosh), std::cosh, -2, 2},
    {FN(deg2rad), [](double x) { return x / 180 * pi(); }, -90, 90},
    {FN(digamma), digamma, 0.5, 8, true, 100},
    {FN(erf), std::erf, -2, 2},
    {FN(erfc), std::erfc, -2, 2},
    {FN(erfinv), erfinv, -0.9, 0.9},
    {FN(exp), std::exp, -2, 2},
    {FN(exp2), std::exp2, -2, 2},
    {FN(expm1), std::expm1, -2, 2},
    {FN(i0), [](double x) { return std::cyl_bessel_i(0, std::abs(x)); }, -3, 3},
    {FN(lgamma), std::lgamma, 2.2, 6},
    {FN(log), std::log, 0.2, 4},
    {FN(log10), std::log10, 0.2, 4},
    {FN(log1p), std::log1p, -0.5, 4},
    {FN(log2), std::log2, 0.2, 4},
    {FN(rad2deg), [](double x) { return x / pi() * 180; }, -3, 3},
    {FN(reciprocal), [](double x) { return 1 / x; }, 0.3, 4},
    {FN(rsqrt), [](double x) { return 1 / std::sqrt(x); }, 0.3, 4},
    {FN(sigmoid), [](double x) { return 1 / (1 + std::exp(-x)); }, -4, 4},
    {FN(sin), std::sin, -6, 6},
    {FN(sinc), [](double x) { return x == 0 ? 1 : std::sin(pi() * x) / (pi() * x); }, 0.1, 3},
    {FN(sinh), std::sinh, -2, 2},
    {FN(sqrt), std::sqrt, 0.2, 4},
    {FN(tan), std::tan, -1, 1},
    {FN(tanh), std::tanh, -3, 3},
    {FN(abs), [](double x) { return std::abs(x); }, -3, -0.1, false},
    {FN(neg), [](double x) { return -x; }, -3, 3, false},
    {FN(square), [](double x) { return x * x; }, -3, 3, false},
};
const UnaryFunction kSteps[] = {
    {FN(ceil), std::ceil, -3, 3, false},
    {FN(floor), std::floor, -3, 3, false},
    {FN(round), std::nearbyint, -3, 3, false},
    {FN(trunc), std::trunc, -3, 3, false},
    {FN(sign), [](double x) { return double(x > 0) - double(x < 0); }, -3, 3, false},
    {FN(sgn), [](double x) { return double(x > 0) - double(x < 0); }, -3, 3, false},
    {FN(frac), [](double x) { return x - std::trunc(x); }, -3, 3, false},
};
#undef FN

// `n` numbers from low to high, in no order.
Tensor spread(IntArrayRef sizes, double low, double high, ScalarType dtype = kFloat64) {
  const Tensor t = zeros(sizes, kFloat64);
  const int64_t n = t.numel();
  for (int64_t i = 0; i < n; ++i) {
    const double place = (static_cast<double>(i * 7919 % n) + 0.37) / static_cast<double>(n);
    t.data_ptr<double>()[i] = low + (high - low) * place;
  }
  return t.to(dtype);
}

double tolerance_of(ScalarType dtype) {
  return dtype == kFloat64 ? 1e-12 : dtype == kFloat32 ? 1e-6 : dtype == kFloat16 ? 2e-3 : 1.6e-2;
}

void check_unary(const UnaryFunction& f, const Tensor& x) {
  const Tensor y = f.op(x);
  CHECK(y.sizes() == x.sizes());
  CHECK(y.scalar_type() == x.scalar_type());
  const Doubles inputs = values(x), got = values(y);
  const double allowed = tolerance_of(x.scalar_type()) * f.tolerance;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const double want = f.reference(inputs[i]);
    CAPTURE(inputs[i]);
    CAPTURE(x.scalar_type());
    CHECK(std::abs(got[i] - want) <= allowed * (1 + std::abs(want)));
  }
  const Tensor target = x.clone();
  f.inplace(const_cast<Tensor&>(target));
  CHECK(values(target) == got);
}

void check_function(const UnaryFunction& f) {
  CAPTURE(f.op.schema());
  for (const ScalarType dtype : {kFloat64, kFloat32, kFloat16, kBFloat16}) {
    check_unary(f, spread({37}, f.low, f.high, dtype));                  // a tail after the vectors
    check_unary(f, spread({4, 5}, f.low, f.high, dtype).t());            // dense in another order
    check_unary(f, spread({6, 7}, f.low, f.high, dtype).select(1, 2));   // strided
    check_unary(f, spread({37, 2}, f.low, f.high, dtype).select(1, 1));  // every other element, the last one included
    check_unary(f, spread({1, 3}, f.low, f.high, dtype).expand({300, 3}));  // every element many times
    check_unary(f, spread({}, f.low, f.high, dtype));
    check_unary(f, spread({0, 3}, f.low, f.high, dtype));
  }
  CHECK(f.op(empty({2, 0, 3}, kMeta)).sizes() == IntArrayRef({2, 0, 3}));
  CHECK(f.op(empty({2}, kMeta)).is_meta());
}

TEST_CASE("unary: values in every floating point dtype and layout") {
  for (const UnaryFunction& f : kSmooth) check_function(f);
  for (const UnaryFunction& f : kSteps) check_function(f);
}

TEST_CASE("unary: derivatives, twice") {
  for (const UnaryFunction& f : kSmooth) {
    CAPTURE(f.op.schema());
    const auto fn = [&](const Tensors& in) { return Tensors{f.op(in[0])}; };
    check_gradients(fn, {spread({5}, f.low, f.high).requires_grad_()});
    check_gradients(fn, {spread({2, 3}, f.low, f.high).t().requires_grad_()});
    check_gradients(fn, {spread({}, f.low, f.high).requires_grad_()});
    // In place, on a tensor that is no leaf.
    const auto inplace = [&](const Tensors& in) {
      Tensor x = in[0] * 1;
      return Tensors{f.inplace(x)};
    };
    check_gradients(inplace, {spread({4}, f.low, f.high).requires_grad_()});
  }
  for (const UnaryFunction& f : kSteps) {
    CAPTURE(f.op.schema());
    const auto fn = [&](const Tensors& in) { return Tensors{f.op(in[0])}; };
    check_gradient(fn, {spread({7}, f.low, f.high).requires_grad_()});
  }
}

TEST_CASE("unary: acosh has a derivative below -1, where it has no value") {
  const Tensor x = tensor({-2.0, 0.5, 2.0}, kFloat64).requires_grad_();
  x.acosh().sum().backward();
  const Doubles got = values(x.grad());
  CHECK(got[0] == doctest::Approx(1 / std::sqrt(3.0)));
  CHECK(std::isnan(got[1]));
  CHECK(got[2] == doctest::Approx(1 / std::sqrt(3.0)));
}

TEST_CASE("unary: integers and bool") {
  const Tensor x = tensor({1, 2, 3}, kInt32);
  CHECK(exp(x).scalar_type() == kFloat32);
  CHECK(values(exp(x))[1] == doctest::Approx(std::exp(2)).epsilon(1e-6));
  CHECK(values(sqrt(tensor({true, false})))[0] == 1);
  CHECK_THROWS_AS(x.clone().exp_(), TypeError);
  CHECK(values(neg(x)) == Doubles{-1, -2, -3});
  CHECK(values(neg(tensor({1, 2}, kUInt8))) == Doubles{255, 254});
  CHECK(values(abs(tensor({-128, 5}, kInt8))) == Doubles{-128, 5});  // wraps around
  CHECK(floor(x).scalar_type() == kInt32);
  CHECK(values(round(x)) == Doubles{1, 2, 3});
  CHECK(values(sign(tensor({-5, 0, 5}, kInt64))) == Doubles{-1, 0, 1});
  CHECK(square(tensor({true, false})).scalar_type() == kInt64);
  CHECK(values(square(x)) == Doubles{1, 4, 9});
  CHECK(values(bitwise_not(x)) == Doubles{-2, -3, -4});
  CHECK(values(~tensor({true, false})) == Doubles{0, 1});
  CHECK(values(logical_not(x)) == Doubles{0, 0, 0});
  CHECK(logical_not(x).scalar_type() == kBool);
  CHECK_THROWS_AS(neg(tensor({true})), NotImplementedError);
  CHECK_THROWS_AS(frac(x), NotImplementedError);
  CHECK_THROWS_AS(bitwise_not(tensor({1.0})), NotImplementedError);
  CHECK_THROWS_AS(positive(tensor({true})), TypeError);
}

TEST_CASE("unary: predicates") {
  const double inf = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
  for (const ScalarType dtype : {kFloat64, kFloat32, kFloat16, kBFloat16}) {
    const Tensor x = tensor({0.0, -0.0, 1.5, -2.0, inf, -inf, nan}).to(dtype);
    CHECK(values(isnan(x)) == Doubles{0, 0, 0, 0, 0, 0, 1});
    CHECK(values(isinf(x)) == Doubles{0, 0, 0, 0, 1, 1, 0});
    CHECK(values(isposinf(x)) == Doubles{0, 0, 0, 0, 1, 0, 0});
    CHECK(values(isneginf(x)) == Doubles{0, 0, 0, 0, 0, 1, 0});
    CHECK(values(isfinite(x)) == Doubles{1, 1, 1, 1, 0, 0, 0});
    CHECK(values(isreal(x)) == Doubles(7, 1));
    CHECK(values(signbit(x.to(dtype).narrow(0, 0, 6))) == Doubles{0, 1, 0, 1, 0, 1});
    CHECK(isnan(x).scalar_type() == kBool);
    CHECK(values(nan_to_num(x, 7, 8, 9)) == Doubles{0, -0.0, 1.5, -2, 8, 9, 7});
  }
  CHECK(values(isfinite(tensor({1, 2}, kInt64))) == Doubles{1, 1});
  CHECK(values(isnan(tensor({true}))) == Doubles{0});
  CHECK(values(nan_to_num(tensor({inf, -inf, nan}).to(kFloat16))) == Doubles{65504, -65504, 0});
}

// The vectors of floats have code of their own; 20 numbers are more than one of them.
TEST_CASE("unary: float32 is float64 rounded where numbers are special") {
  const Tensor x = tensor({0.0,  -0.0, 0.5,  -0.5,  1.0,    -1.0, 2.0,   -2.0,     4.4,       -6.0,
                           10.1, 13.0, 1e-4, 1e-40, -1e-40, 1e38, -3e38, HUGE_VAL, -HUGE_VAL, std::nan("")},
                          kFloat64)
                       .to(kFloat32);
  const auto check = [&](const UnaryOp& op) {
    CAPTURE(op.schema());
    const Doubles inputs = values(x), got = values(op(x)), want = values(op(x.to(kFloat64)).to(kFloat32));
    for (size_t i = 0; i < got.size(); ++i) {
      CAPTURE(inputs[i]);
      if (std::isnan(want[i]) || std::isinf(want[i])) {
        CHECK((got[i] == want[i] || (std::isnan(got[i]) && std::isnan(want[i]))));
      } else {
        CHECK(std::abs(got[i] - want[i]) <= 2e-6 * std::abs(want[i]) + 1e-45);
        CHECK(std::signbit(got[i]) == std::signbit(want[i]));
      }
    }
  };
  for (const UnaryOp* op : {&ops::erfc, &ops::erfinv, &ops::i0, &ops::special_i0e, &ops::special_i1, &ops::special_i1e,
                            &ops::lgamma, &ops::exp, &ops::log, &ops::log1p, &ops::tanh, &ops::sqrt, &ops::sign}) {
    check(*op);
  }
  const Doubles odds = values(logit(x)), other_odds = values(logit(x.to(kFloat64)).to(kFloat32));
  for (size_t i = 0; i < odds.size(); ++i) {
    if (std::isfinite(other_odds[i]))
      CHECK(odds[i] == doctest::Approx(other_odds[i]));
    else
      CHECK((odds[i] == other_odds[i] || (std::isnan(odds[i]) && std::isnan(other_odds[i]))));
  }
  const Doubles held = values(nan_to_num(x, -7, 8, -9));
  CHECK(Doubles(held.end() - 3, held.end()) == Doubles{8, -9, -7});
}

struct ComplexFunction {
  const UnaryOp& op;
  std::complex<double> (*reference)(const std::complex<double>&);
};

// Points at every angle, from 1e-30 to 1e30, and close to 1, -1, i and -i.
std::vector<std::complex<float>> points_of_every_magnitude() {
  std::vector<std::complex<float>> points;
  for (float angle = 0.1f; angle < 6.3f; angle += 0.3f) {
    for (float radius : {1e-30f, 1e-10f, 1e-3f, 0.6f, 1.0f, 1.5f, 10.0f, 500.0f, 1e10f, 1e30f}) {
      points.push_back(std::polar(radius, angle));
    }
    const std::complex<float> near = std::polar(1e-3f, angle), i(0, 1);
    points.insert(points.end(), {1.0f + near, near - 1.0f, i + near, near - i});
  }
  return points;
}

TEST_CASE("unary: functions of complex numbers are accurate at every magnitude") {
  const std::vector<std::complex<float>> points = points_of_every_magnitude();
  std::vector<float> parts;
  for (const std::complex<float>& z : points) parts.insert(parts.end(), {z.real(), z.imag()});
  const Tensor z = view_as_complex(tensor(parts).view({-1, 2}));
  const ComplexFunction functions[] = {
      {ops::exp, std::exp},   {ops::log, std::log},     {ops::log10, std::log10}, {ops::sqrt, std::sqrt},
      {ops::sin, std::sin},   {ops::cos, std::cos},     {ops::tan, std::tan},     {ops::asin, std::asin},
      {ops::acos, std::acos}, {ops::atan, std::atan},   {ops::sinh, std::sinh},   {ops::cosh, std::cosh},
      {ops::tanh, std::tanh}, {ops::asinh, std::asinh}, {ops::acosh, std::acosh}, {ops::atanh, std::atanh}};
  for (const auto& [op, reference] : functions) {
    CAPTURE(op.schema());
    const Doubles got = values(view_as_real(op(z)));
    double worst = 0;
    for (size_t i = 0; i < points.size(); ++i) {
      const std::complex<double> want = reference(points[i]);
      const bool has_digits = std::abs(want) > 1e-36 && std::abs(want) < 1e38;
      if (has_digits)
        worst = std::max(worst, std::abs(std::complex(got[2 * i], got[2 * i + 1]) - want) / std::abs(want));
    }
    CHECK(worst < 1e-6);
  }
}

TEST_CASE("unary: rounding to decimals, logit, polygamma") {
  CHECK(values(round(tensor({0.5, 1.5, 2.5, -0.5}, kFloat64))) == Doubles{0, 2, 2, -0.0});
  CHECK(values(round(tensor({1.25, 1.35}, kFloat64), 1)) == Doubles{1.2, 1.4});
  CHECK(values(round(tensor({151.0, 249.0}, kFloat64), -2)) == Doubles{200, 200});
  CHECK(values(round(tensor({151.0, -2.5e9, 0.5}), -2)) == Doubles{200, -2.5e9, 0});
  CHECK(values(round(tensor({1.28125, -3.4375}), 3)) == values(tensor({1.281f, -3.438f})));
  CHECK(values(logit(tensor({0.5, 0.0}, kFloat64), 0.1))[1] == doctest::Approx(std::log(0.1 / 0.9)));
  CHECK(std::isinf(values(logit(tensor({0.0}, kFloat64)))[0]));
  // pi^2 / 6, and -2 zeta(3).
  CHECK(values(polygamma(1, tensor({1.0}, kFloat64)))[0] == doctest::Approx(1.6449340668482264365));
  CHECK(values(polygamma(2, tensor({1.0}, kFloat64)))[0] == doctest::Approx(-2.4041138063191885708));
  CHECK(values(polygamma(1, tensor({-0.5}, kFloat64)))[0] == doctest::Approx(8.9348022005446793094));
  CHECK(values(digamma(tensor({-0.5}, kFloat64)))[0] == doctest::Approx(0.03648997397857652056));
  CHECK(values(polygamma(1, tensor({HUGE_VAL}, kFloat64))) == Doubles{0});
  CHECK_THROWS_AS(polygamma(-1, tensor({1.0})), ValueError);
  CHECK(values(tensor({1.0}, kFloat64).polygamma_(2)) == values(polygamma(2, tensor({1.0}, kFloat64))));
  CHECK_THROWS_AS(tensor({1}).polygamma_(2), TypeError);
  const auto fn = [](const Tensors& in) {
    return Tensors{logit(in[0]), logit(in[0], 0.2), polygamma(2, in[0]), nan_to_num(in[0])};
  };
  check_gradients(fn, {spread({2, 4}, 0.05, 0.95).requires_grad_()});
}

TEST_CASE("unary: overlapping and broken targets are refused or handled") {
  const Tensor base = spread({3}, 0.5, 1);
  CHECK_THROWS_AS(base.view({3, 1}).expand({3, 2}).exp_(), ValueError);
  CHECK_THROWS_AS(exp(Tensor()), Error);
}

}  // namespace
