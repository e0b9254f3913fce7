#include "core/ops/pointwise/special.h"

#include <cmath>
#include <numbers>

#include "core/ops/pointwise/unary.h"
#include "tests/not_finite.h"
#include "tests/ops/index/index_testing.h"

namespace {

using namespace rush;
using namespace rush::testing;

// `n` numbers from low to high, in no order.
Tensor between(int64_t n, double low, double high, ScalarType dtype = kFloat64) {
  const Tensor t = zeros({n}, kFloat64);
  for (int64_t i = 0; i < n; ++i) {
    t.data_ptr<double>()[i] = low + (high - low) * (static_cast<double>(i * 37 % n) + 0.41) / static_cast<double>(n);
  }
  return t.to(dtype);
}

// By Bessel functions of order 1/3; DLMF 9.6.
double airy_ai(double x) {
  const double size = std::abs(x), z = 2 * size * std::sqrt(size) / 3;
  if (x > 0) return std::sqrt(x / 3) / std::numbers::pi * std::cyl_bessel_k(1.0 / 3, z);
  const double j = std::cyl_bessel_j(1.0 / 3, z), y = std::cyl_neumann(1.0 / 3, z);
  return std::sqrt(size) / 3 * (j + 0.5 * j - std::sqrt(3.0) / 2 * y);  // J of order -1/3 is cos j - sin y
}
double odd(double (*of_size)(double), double x) { return x < 0 ? -of_size(-x) : of_size(x); }
double i0(double x) { return std::cyl_bessel_i(0, std::abs(x)); }
double i1(double x) {
  return odd([](double size) { return std::cyl_bessel_i(1, size); }, x);
}

struct SpecialFunction {
  const UnaryOp& op;
  double (*reference)(double);
  double low, high;
  bool differentiable = false;
};
const SpecialFunction kSpecialFunctions[] = {
    {ops::i0, i0, -30, 30, true},
    {ops::special_i0e, [](double x) { return i0(x) * std::exp(-std::abs(x)); }, -30, 30, true},
    {ops::special_i1, i1, -30, 30, true},
    {ops::special_i1e, [](double x) { return i1(x) * std::exp(-std::abs(x)); }, -30, 30, true},
    {ops::special_modified_bessel_k0, [](double x) { return std::cyl_bessel_k(0, x); }, 0.01, 30},
    {ops::special_modified_bessel_k1, [](double x) { return std::cyl_bessel_k(1, x); }, 0.01, 30},
    {ops::special_scaled_modified_bessel_k0, [](double x) { return std::exp(x) * std::cyl_bessel_k(0, x); }, 0.01, 30},
    {ops::special_scaled_modified_bessel_k1, [](double x) { return std::exp(x) * std::cyl_bessel_k(1, x); }, 0.01, 30},
    {ops::special_bessel_j0, [](double x) { return std::cyl_bessel_j(0, std::abs(x)); }, -50, 50},
    {ops::special_bessel_j1, [](double x) { return odd([](double size) { return std::cyl_bessel_j(1, size); }, x); },
     -50, 50},
    {ops::special_bessel_y0, [](double x) { return std::cyl_neumann(0, x); }, 0.01, 50},
    {ops::special_bessel_y1, [](double x) { return std::cyl_neumann(1, x); }, 0.01, 50},
    {ops::special_spherical_bessel_j0, [](double x) { return std::sph_bessel(0, std::abs(x)); }, -50, 50},
    {ops::special_airy_ai, airy_ai, -20, 20},
};

TEST_CASE("special: Bessel functions against the standard library's") {
  for (const SpecialFunction& f : kSpecialFunctions) {
    CAPTURE(f.op.schema());
    for (const ScalarType dtype : {kFloat64, kFloat32, kBFloat16}) {
      const Tensor x = between(401, f.low, f.high, dtype);
      const Tensor y = f.op(x);
      CHECK(y.scalar_type() == dtype);
      CHECK(values(f.op(x.slice(0, 0, 401, 3))) == values(y.slice(0, 0, 401, 3)));
      const Doubles inputs = values(x), got = values(y);
      // Near a zero the error is absolute.
      const double allowed = dtype == kFloat64 ? 2e-12 : dtype == kFloat32 ? 1e-7 : 4e-3;
      for (size_t i = 0; i < inputs.size(); ++i) {
        CAPTURE(inputs[i]);
        const double want = f.reference(inputs[i]);
        REQUIRE(std::abs(got[i] - want) <= allowed * std::max(std::abs(want), 1.0));
      }
    }
    CHECK(f.op(tensor({1, 2}, kInt64)).scalar_type() == kFloat32);
    CHECK(f.op(empty({2, 3}, kMeta)).sizes() == IntArrayRef({2, 3}));
    if (f.differentiable) {
      const auto fn = [&](const Tensors& in) { return Tensors{f.op(in[0])}; };
      check_gradients(fn, {between(6, -3, 3).requires_grad_()});
    } else {
      const Tensor x = between(3, 1, 2).requires_grad_();
      CHECK_THROWS_AS(f.op(x).sum().backward(), NotImplementedError);
    }
  }
}

TEST_CASE("special: Bessel functions at 0 and infinity, and derivatives at 0") {
  const Tensor edges = tensor({0.0, kInf, -kInf, kNan}, kFloat64);
  const auto check = [&](const UnaryOp& op, double at_zero, double at_infinity, double at_minus_infinity) {
    CAPTURE(op.schema());
    const Doubles got = values(op(edges)), want{at_zero, at_infinity, at_minus_infinity, kNan};
    for (size_t i = 0; i < 4; ++i) {
      CAPTURE(i);
      CHECK((std::isnan(want[i]) ? std::isnan(got[i]) : got[i] == want[i]));
    }
  };
  check(ops::i0, 1, kInf, kInf);
  check(ops::special_i0e, 1, 0, 0);
  check(ops::special_i1, 0, kInf, -kInf);
  check(ops::special_i1e, 0, 0, 0);
  check(ops::special_bessel_j0, 1, 0, 0);
  check(ops::special_bessel_j1, 0, 0, 0);
  check(ops::special_bessel_y0, -kInf, 0, kNan);
  check(ops::special_bessel_y1, -kInf, 0, kNan);
  check(ops::special_modified_bessel_k0, kInf, 0, kNan);
  check(ops::special_scaled_modified_bessel_k1, kInf, 0, kNan);
  check(ops::special_spherical_bessel_j0, 1, 0, 0);
  const Tensor zero = zeros({1}, kFloat64).requires_grad_();
  const auto slope = [&](const Tensor& y) { return values(autograd::grad({y.sum()}, {zero})[0])[0]; };
  CHECK(slope(i0(zero)) == 0);
  CHECK(slope(special_i1(zero)) == 0.5);
  CHECK(slope(special_i1e(zero)) == 0.5);
  // Of huge numbers exp(x) K(x) is sqrt(pi / (2 x)); half of the least number is 0, and has no logarithm.
  const Tensor extremes = tensor({1e31, 1e300, 5e-324}, kFloat64);
  const Doubles scaled = values(ops::special_scaled_modified_bessel_k1(extremes)),
                plain = values(ops::special_modified_bessel_k0(extremes));
  CHECK(scaled[0] == doctest::Approx(std::sqrt(std::acos(0.0) / 1e31)));
  CHECK(scaled[1] == doctest::Approx(std::sqrt(std::acos(0.0) / 1e300)));
  CHECK(plain[1] == 0);
  CHECK(plain[2] == doctest::Approx(744.556));
  // exp(x) alone overflows here; the result does not.
  CHECK(values(i0(tensor({713.0}, kFloat64)))[0] < kInf);
  CHECK(values(i0(tensor({89.5f})))[0] < kInf);
}

TEST_CASE("special: ndtri inverts the normal distribution") {
  const Tensor p = tensor({1e-300, 1e-20, 1e-5, 0.02, 0.1353, 0.136, 0.4, 0.5, 0.7, 0.99, 1 - 1e-9}, kFloat64);
  const Doubles x = values(special_ndtri(p)), inputs = values(p);
  for (size_t i = 0; i < x.size(); ++i) {
    CAPTURE(inputs[i]);
    CHECK(std::erfc(-x[i] / std::numbers::sqrt2) / 2 == doctest::Approx(inputs[i]).epsilon(1e-11));
  }
  const Doubles edges = values(special_ndtri(tensor({0.0, 1.0, -0.1, 1.1, kNan}, kFloat64)));
  CHECK(edges[0] == -kInf);
  CHECK(edges[1] == kInf);
  for (size_t i = 2; i < 5; ++i) CHECK(std::isnan(edges[i]));
  check_gradients([](const Tensors& in) { return Tensors{special_ndtri(in[0])}; },
                  {between(6, 0.02, 0.98).requires_grad_()});
}

// Both have formulas of their own for float32, and one for its tails.
TEST_CASE("special: erfinv and ndtri of float32 are as precise as that") {
  const Tensor p = cat({linspace(0.001, 0.999, 500), logspace(-40, -1, 200), 1 - logspace(-7, -1, 200)}).to(kFloat32);
  const auto check = [](const Tensor& got, const Tensor& want) {
    CHECK(values(((got.to(kFloat64) - want) / want.abs().clamp_min(1e-30)).abs().max())[0] < 6e-7);
  };
  check(special_ndtri(p), special_ndtri(p.to(kFloat64)));
  const Tensor y = cat({p, -p}).clamp(-1 + 6e-8, 1 - 6e-8);
  check(y.erfinv(), y.to(kFloat64).erfinv());
  CHECK(values((y.to(kFloat64).erfinv().erf() - y).abs().max())[0] < 1e-15);
}

TEST_CASE("special: the first polygamma function is the Hurwitz zeta function of 2") {
  for (const ScalarType dtype : {kFloat64, kFloat32}) {
    const Tensor x = cat({linspace(0.01, 12, 400), logspace(2, 12, 20), -linspace(0.13, 7.93, 53)}).to(dtype);
    const Tensor exact = x.to(kFloat64), whole = exact.floor(), fraction = exact - whole;
    const Tensor sine = (fraction * std::numbers::pi).sin(), reflected = (std::numbers::pi / sine).square();
    const Tensor want = where(exact > 0, special_zeta(full_like(exact, 2), exact.abs()),
                              reflected - special_zeta(full_like(exact, 2), (1 - exact).abs()));
    const Tensor off = (polygamma(1, x).to(kFloat64) - want).abs() / want.abs();
    CHECK(values(off.max())[0] < (dtype == kFloat64 ? 1e-13 : 6e-7));
  }
}

// Q(n, x) for an integer n: e^-x (1 + x + ... + x^(n - 1) / (n - 1)!).
double upper_of_integer(int n, double x) {
  double sum = 0;
  for (int k = 0; k < n; ++k) sum += std::exp(k * std::log(x) - x - std::lgamma(k + 1));
  return sum;
}

TEST_CASE("special: incomplete gamma functions") {
  for (const int n : {1, 2, 5, 15, 21, 40, 150, 199, 250, 1000}) {
    for (const double ratio : {0.01, 0.3, 0.71, 0.95, 1.0, 1.05, 1.2, 1.4, 2.5}) {
      const double x = n * ratio, upper = upper_of_integer(n, x);
      CAPTURE(n);
      CAPTURE(x);
      for (const ScalarType dtype : {kFloat64, kFloat32}) {
        const Tensor a = tensor({static_cast<double>(n)}, kFloat64).to(dtype);
        const double exact = dtype == kFloat64 ? x : static_cast<double>(static_cast<float>(x));
        const Tensor t = tensor({exact}, kFloat64).to(dtype);
        const double want = dtype == kFloat64 ? upper : upper_of_integer(n, exact);
        const double allowed = dtype == kFloat64 ? 1e-12 : 2e-7;
        CHECK(std::abs(values(igammac(a, t))[0] - want) <= allowed);
        CHECK(std::abs(values(igamma(a, t))[0] - (1 - want)) <= allowed);
      }
      if (upper > 1e-250) {
        const Tensor a = tensor({static_cast<double>(n)}, kFloat64), t = tensor({x}, kFloat64);
        CHECK(values(igammac(a, t))[0] == doctest::Approx(upper).epsilon(1e-10));
      }
    }
  }
  // Small tails, of either side, have all their digits: P(a, x) x^-a gamma(a + 1) is 1 where x is small.
  const Tensor tiny = igamma(tensor({0.5, 30.0}, kFloat64), tensor({1e-30, 1e-9}, kFloat64));
  CHECK(values(tiny)[0] == doctest::Approx(std::erf(1e-15)).epsilon(1e-13));
  CHECK(values(tiny)[1] == doctest::Approx(std::exp(30 * std::log(1e-9) - std::lgamma(31))).epsilon(1e-11));
  for (const double x : {1e-6, 0.01, 0.3, 0.7, 1.0, 3.0, 20.0}) {
    CAPTURE(x);
    const Tensor half = tensor({0.5}, kFloat64), t = tensor({x}, kFloat64);
    CHECK(values(igamma(half, t))[0] == doctest::Approx(std::erf(std::sqrt(x))).epsilon(1e-13));
    CHECK(values(igammac(half, t))[0] == doctest::Approx(std::erfc(std::sqrt(x))).epsilon(1e-12));
  }
  const Tensor a = tensor({0.0, 1.0, 0.0, kInf, 1.0, -1.0, 1.0, kInf}, kFloat64);
  const Tensor x = tensor({1.0, 0.0, 0.0, 1.0, kInf, 1.0, -1.0, kInf}, kFloat64);
  const Doubles lower = values(igamma(a, x)), upper = values(igammac(a, x));
  CHECK(Doubles{lower[0], lower[1], lower[3], lower[4]} == Doubles{1, 0, 0, 1});
  CHECK(Doubles{upper[0], upper[1], upper[3], upper[4]} == Doubles{0, 1, 1, 0});
  for (const size_t i : {2, 5, 6, 7}) {
    CHECK(std::isnan(lower[i]));
    CHECK(std::isnan(upper[i]));
  }
  CHECK(igamma(tensor({1, 2}), tensor({2, 3})).scalar_type() == kFloat32);
  CHECK(igamma(zeros({2, 1}), zeros({3})).sizes() == IntArrayRef({2, 3}));
  const Tensor order = between(4, 0.5, 4), written = order.clone();
  written.igamma_(between(4, 1, 3));
  CHECK(values(written) == values(order.igamma(between(4, 1, 3))));
}

TEST_CASE("special: derivatives of incomplete gamma and zeta functions by their second argument") {
  const std::vector<std::pair<DimVector, DimVector>> shapes = {
      {{4}, {4}}, {{2, 3}, {3}}, {{2, 3}, {2, 3}}, {{2, 1}, {3}}};
  for (const auto& [left, right] : shapes) {
    const Tensor a = between(checked_numel(left), 0.5, 4).view(left);
    const Tensor x = between(checked_numel(right), 0.5, 3).view(right).requires_grad_();
    const auto fn = [&](const Tensors& in) {
      return Tensors{igamma(a, in[0]), igammac(a, in[0]), special_zeta(a + 1, in[0])};
    };
    check_gradients(fn, {x});
    if (broadcast_shapes(left, right, "test") != left) continue;
    const auto in_place = [&](const Tensors& in) {
      return Tensors{a.clone().igamma_(in[0]), a.clone().igammac_(in[0])};
    };
    check_gradients(in_place, {x});
  }
  const Tensor first = between(4, 1.5, 4).requires_grad_(), second = between(4, 0.5, 3);
  CHECK_THROWS_AS(igamma(first, second).sum().backward(), NotImplementedError);
  CHECK_THROWS_AS(igammac(first, second).sum().backward(), NotImplementedError);
  CHECK_THROWS_AS(special_zeta(first, second).sum().backward(), NotImplementedError);
}

TEST_CASE("special: the Hurwitz zeta function") {
  const double pi = std::numbers::pi;
  const Doubles whole = values(special_zeta(tensor({2.0, 4.0, 6.0}, kFloat64), ones({3}, kFloat64)));
  CHECK(whole[0] == doctest::Approx(pi * pi / 6).epsilon(1e-15));
  CHECK(whole[1] == doctest::Approx(std::pow(pi, 4) / 90).epsilon(1e-15));
  CHECK(whole[2] == doctest::Approx(std::pow(pi, 6) / 945).epsilon(1e-15));
  // Far below 0 nothing is counted up: pi^2 / sin^2(pi / 2) for the squares of all halves.
  const Tensor far_below = tensor({-1e12 - 0.5}, kFloat64);
  CHECK(values(special_zeta(full({1}, 2, kFloat64), far_below))[0] == doctest::Approx(std::pow(std::acos(-1.0), 2)));
  CHECK(std::abs(values(special_zeta(full({1}, 3, kFloat64), far_below))[0]) < 1e-12);
  // zeta(s, q) - zeta(s, q + 1) = q^-s.
  const Tensor s = between(50, 1.1, 60), q = between(50, 0.2, 30);
  const Tensor difference = special_zeta(s, q) - special_zeta(s, q + 1), want = q.pow(-s);
  CHECK(largest((difference - want) / special_zeta(s, q)) < 1e-14);
  const Tensor s_float = between(50, 1.1, 20, kFloat32), q_float = q.to(kFloat32);
  CHECK(largest(special_zeta(s_float, q_float) / special_zeta(s_float.to(kFloat64), q_float.to(kFloat64)) - 1) < 2e-7);
  const Doubles edges = values(special_zeta(tensor({1.0, 0.5, 2.0, 2.5, 2.0, 200.0, 2.0}, kFloat64),
                                            tensor({2.0, 2.0, -1.0, -0.5, -0.5, 1.0, kInf}, kFloat64)));
  CHECK(edges[0] == kInf);
  CHECK(std::isnan(edges[1]));
  CHECK(edges[2] == kInf);
  CHECK(std::isnan(edges[3]));
  CHECK(edges[4] == doctest::Approx(4 + pi * pi / 2).epsilon(1e-14));
  CHECK(edges[5] == 1);
  CHECK(edges[6] == 0);
}

}  // namespace
