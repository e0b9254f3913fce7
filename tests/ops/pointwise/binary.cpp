#include "core/ops/pointwise/binary.h"

#include <bit>
#include <cmath>
#include <limits>

#include "core/complex_math.h"
#include "core/ops/pointwise/power.h"
#include "tests/not_finite.h"
#include "tests/ops/index/index_testing.h"

namespace {

using namespace rush;
using namespace rush::testing;

// Distinct numbers from low to high.
Tensor ramp(IntArrayRef sizes, double low, double high) {
  const Tensor t = zeros(sizes, kFloat64);
  const auto n = static_cast<double>(t.numel());
  for (int64_t i = 0; i < t.numel(); ++i) {
    t.data_ptr<double>()[i] = low + (high - low) * (static_cast<double>(i * 3 % t.numel()) + 0.41) / n;
  }
  return t.requires_grad_();
}

struct BinaryFunction {
  const BinaryOp& op;
  double (*reference)(double, double);
  double low_a, high_a, low_b, high_b;
};
const BinaryFunction kBinaryFunctions[] = {
    {ops::mul, [](double a, double b) { return a * b; }, -2, 2, -2, 2},
    {ops::div, [](double a, double b) { return a / b; }, -2, 2, 1, 2},
    {ops::atan2, std::atan2, -2, 2, 0.5, 2},
    {ops::hypot, std::hypot, -2, 2, 0.5, 2},
    {ops::copysign, std::copysign, 0.5, 2, -2, 2},
    {ops::pow, std::pow, 0.5, 2, -2, 3},
    {ops::xlogy, [](double a, double b) { return a * std::log(b); }, -2, 2, 0.5, 2},
    {ops::special_xlog1py, [](double a, double b) { return a * std::log1p(b); }, -2, 2, -0.5, 2},
    {ops::logaddexp, [](double a, double b) { return std::log(std::exp(a) + std::exp(b)); }, -2, 2, -2, 2},
    {ops::logaddexp2, [](double a, double b) { return std::log2(std::exp2(a) + std::exp2(b)); }, -2, 2, -2, 2},
    {ops::fmod, std::fmod, 4.1, 4.9, 1.1, 1.3},
    {ops::remainder, [](double a, double b) { return a - b * std::floor(a / b); }, -4.9, -4.1, 1.1, 1.3},
};

void check_binary(const BinaryFunction& f, const Tensor& a, const Tensor& b) {
  const Tensor got = f.op(a, b);
  const DimVector shape = broadcast_shapes(a.sizes(), b.sizes(), "test");
  CHECK(got.sizes() == IntArrayRef(shape));
  const Doubles x = values(a.expand(shape)), y = values(b.expand(shape)), z = values(got);
  const double tolerance = a.scalar_type() == kFloat64 ? 1e-12 : a.scalar_type() == kFloat32 ? 3e-6 : 2e-2;
  for (size_t i = 0; i < z.size(); ++i) {
    const double want = f.reference(x[i], y[i]);
    CAPTURE(x[i]);
    CAPTURE(y[i]);
    CHECK(std::abs(z[i] - want) <= tolerance * (1 + std::abs(want)));
  }
}

TEST_CASE("binary: values, broadcast and strided") {
  for (const BinaryFunction& f : kBinaryFunctions) {
    CAPTURE(f.op.schema());
    for (const ScalarType dtype : {kFloat64, kFloat32, kBFloat16}) {
      const bool jumps = &f.op == &ops::fmod || &f.op == &ops::remainder;
      if (jumps && dtype == kBFloat16) continue;  // rounding may carry an argument over a jump
      const auto a = [&](IntArrayRef sizes) { return ramp(sizes, f.low_a, f.high_a).detach().to(dtype); };
      const auto b = [&](IntArrayRef sizes) { return ramp(sizes, f.low_b, f.high_b).detach().to(dtype); };
      check_binary(f, a({37}), b({37}));
      check_binary(f, a({4, 5}), b({5}));
      check_binary(f, a({4, 1}), b({1, 300}));
      check_binary(f, a({4, 5}).t(), b({5, 4}));
      check_binary(f, a({}), b({3}));
      check_binary(f, a({0, 3}), b({3}));
    }
    CHECK(f.op(empty({2, 1}, kMeta), empty({3}, kMeta)).sizes() == IntArrayRef({2, 3}));
    CHECK_THROWS_AS(f.op(zeros({2}), zeros({3})), ValueError);
  }
}

TEST_CASE("binary: derivatives, twice") {
  for (const BinaryFunction& f : kBinaryFunctions) {
    CAPTURE(f.op.schema());
    const auto fn = [&](const Tensors& in) { return Tensors{f.op(in[0], in[1])}; };
    check_gradients(fn, {ramp({5}, f.low_a, f.high_a), ramp({5}, f.low_b, f.high_b)});
    check_gradients(fn, {ramp({2, 1}, f.low_a, f.high_a), ramp({3}, f.low_b, f.high_b)});
    check_gradients(fn, {ramp({2, 3}, f.low_a, f.high_a).detach().t().requires_grad_(), ramp({}, f.low_b, f.high_b)});
  }
  // At the origin, and where squares vanish, the angle has no direction.
  const Tensor y = tensor({0., -0., 1e-200}, kFloat64).requires_grad_(), x = y.detach().clone().requires_grad_();
  for (const Tensor& grad : autograd::grad({atan2(y, x)}, {y, x}, {ones({3}, kFloat64)})) {
    CHECK(largest(grad) < 1e-100);
  }
  const auto several = [](const Tensors& in) {
    const Tensor a = in[0], b = in[1];
    return Tensors{add(a, b, 2),        sub(a, b, 3),
                   rsub(a, b, 2),       div(a, b, std::nullopt),
                   div(a, b, "floor"),  div(a, b, "trunc"),
                   true_divide(a, b),   pow(a, 3),
                   pow(a, -1),          pow(a, 0.5),
                   pow(a, 0),           pow(2.5, a),
                   float_power(a, 1.5), a % b};
  };
  check_gradients(several, {ramp({2, 2}, 1.2, 1.9), ramp({2}, 2.1, 2.9)});
  const auto inplace = [](const Tensors& in) {
    Tensor x = in[0] * 1;
    x.mul_(in[1]).div_(in[1] + 1).sub_(in[1], 2).pow_(2).add_(in[1]).atan2_(in[1]);
    return Tensors{x};
  };
  check_gradients(inplace, {ramp({2, 3}, 1, 2), ramp({3}, 1, 2)});
}

TEST_CASE("binary: division of integers") {
  const Tensor a = tensor({7, -7, 7, -7}, kInt32), b = tensor({2, 2, -2, -2}, kInt32);
  CHECK(values(div(a, b)) == Doubles{3.5, -3.5, -3.5, 3.5});
  CHECK(div(a, b).scalar_type() == kFloat32);
  CHECK(values(div(a, b, "trunc")) == Doubles{3, -3, -3, 3});
  CHECK(values(div(a, b, "floor")) == Doubles{3, -4, -4, 3});
  CHECK(values(floor_divide(a, b)) == Doubles{3, -4, -4, 3});
  CHECK(values(fmod(a, b)) == Doubles{1, -1, 1, -1});
  CHECK(values(remainder(a, b)) == Doubles{1, 1, -1, -1});
  for (const ScalarType dtype : {kInt64, kInt16, kInt8}) {
    CHECK(values(remainder(a.to(dtype), b.to(dtype))) == Doubles{1, 1, -1, -1});
  }
  CHECK(values(remainder(tensor({200, 7}, kUInt8), tensor({130, 9}, kUInt8))) == Doubles{70, 7});
  CHECK(values(remainder(a, 3)) == Doubles{1, 2, 1, 2});
  CHECK(values(remainder(10, b)) == Doubles{0, 0, 0, 0});
  CHECK(div(a, b, "floor").scalar_type() == kInt32);
  const Tensor target = a.clone();
  CHECK_THROWS_AS(target.floor_divide_(tensor({1, 0, 1, 1}, kInt32)), ValueError);
  if (target.is_cpu()) CHECK(values(target) == values(a));  // a GPU finds the zero too late
  CHECK_THROWS_AS(target.div_(b), TypeError);
  CHECK_THROWS_AS(div(a, b, "round"), ValueError);
  CHECK(values(tensor({200}, kUInt8) / 1000) == Doubles{static_cast<double>(0.2f)});
  const Tensor smallest = tensor({std::numeric_limits<int64_t>::min()});
  CHECK(values(div(smallest, -1, "trunc")) == values(smallest));
  CHECK(values(fmod(smallest, -1)) == Doubles{0});
}

TEST_CASE("binary: division of floating point numbers follows Python") {
  const Tensor a = tensor({7.0, -7.0, 1.0, 5.0, -kInf}, kFloat64), b = tensor({2.0, 2.0, 0.1, -kInf, 2.0}, kFloat64);
  CHECK(values(floor_divide(a, b))[1] == -4);
  CHECK(values(floor_divide(a, b))[2] == 9);  // 0.1 is a little more than a tenth
  CHECK(values(remainder(a, b))[1] == 1);
  CHECK(values(remainder(a, b))[3] == -kInf);
  CHECK(values(div(a, tensor({0.0}, kFloat64), "floor"))[0] == kInf);
  CHECK(std::isnan(values(fmod(a, 0.0))[0]));
  for (const ScalarType dtype : {kFloat16, kFloat32, kFloat64}) {
    const Tensor numbers = tensor({1.5, -2.0, 0.0}).to(dtype);
    CHECK(values(fmod(numbers, kInf)) == Doubles{1.5, -2, 0});
    CHECK(values(fmod(numbers, -kInf)) == Doubles{1.5, -2, 0});
    CHECK(values(remainder(numbers, kInf)) == Doubles{1.5, kInf, 0});
  }
  // Exact in float32 too, where the quotient rounds up to an integer.
  uint32_t state = 1;
  const auto random = [&] {
    state = state * 1664525u + 1013904223u;
    return std::bit_cast<float>((state & 0x80ffffffu) | 0x3f000000u) * (state % 3 ? 1.0f : 1e6f);
  };
  constexpr int64_t n = 20001;
  const Tensor x = zeros({n}), y = zeros({n});
  for (int64_t i = 0; i < n; ++i) {
    x.data_ptr<float>()[i] = i % 2 ? random() : random() * static_cast<float>(i);
    y.data_ptr<float>()[i] = random();
  }
  const Doubles all = values(fmod(x, y)), by_two = values(fmod(x.slice(0, 0, n, 2), y.slice(0, 0, n, 2)));
  for (int64_t i = 0; i < n; ++i) {
    const float numerator = x.data_ptr<float>()[i], divisor = y.data_ptr<float>()[i];
    CAPTURE(numerator);
    CAPTURE(divisor);
    REQUIRE(all[static_cast<size_t>(i)] == std::fmod(numerator, divisor));
    if (i % 2 == 0) REQUIRE(by_two[static_cast<size_t>(i / 2)] == std::fmod(numerator, divisor));
  }
}

TEST_CASE("binary: powers") {
  const Tensor n = tensor({-3, -1, 0, 1, 2}, kInt64);
  CHECK(values(pow(n, 3)) == Doubles{-27, -1, 0, 1, 8});
  CHECK(values(pow(tensor({2, -1, 1, 3, 0}, kInt64), n)) == Doubles{0, -1, 1, 3, 0});
  CHECK(values(pow(tensor({3, 5}, kUInt8), tensor({6, 2}, kUInt8))) == Doubles{729 % 256, 25});
  CHECK_THROWS_AS(pow(n, -2), ValueError);
  CHECK(pow(n, 0.5).scalar_type() == kFloat32);
  CHECK(pow(n, 2).scalar_type() == kInt64);
  CHECK(pow(2, n.to(kFloat64)).scalar_type() == kFloat64);
  CHECK(float_power(n, 2).scalar_type() == kFloat64);
  CHECK_THROWS_AS(n.clone().pow_(0.5), TypeError);
  CHECK(values(pow(tensor({0.0, 4.0}, kFloat64), -0.5)) == Doubles{kInf, 0.5});
  CHECK(values(pow(tensor({0.0}, kFloat64), 0)) == Doubles{1});
  CHECK(std::isnan(values(pow(tensor({-8.0}, kFloat64), 1.0 / 3))[0]));
  // Where a formula would give 0 * infinity.
  const Tensor zero = tensor({0.0}, kFloat64).requires_grad_(), exponent = tensor({0.0}, kFloat64).requires_grad_();
  pow(zero, exponent).backward();
  CHECK(values(zero.grad()) == Doubles{0});
  CHECK(values(exponent.grad()) == Doubles{0});
}

TEST_CASE("binary: integers wrap around, bool adds and multiplies") {
  const Tensor top = tensor({127, 127}, kInt8), one = tensor({1, 2}, kInt8);
  CHECK(values(top + one) == Doubles{-128, -127});
  CHECK(values(top * one) == Doubles{127, -2});
  CHECK(values(add(one, one, 100)) == Doubles{101, -54});
  const Tensor yes = tensor({true, false}), no = tensor({false, false});
  CHECK(values(yes + yes) == Doubles{1, 0});
  CHECK(values(yes * no) == Doubles{0, 0});
  CHECK_THROWS_AS(yes - no, TypeError);
  CHECK_THROWS_AS(fmod(yes, yes), NotImplementedError);
}

// The vectors of floats have code of their own; 20 numbers are more than one of them.
TEST_CASE("binary: alpha is of the kind of the result") {
  const Tensor integers = tensor({3, 5}), floats = tensor({3.0, 5.0}), flags = tensor({true, false});
  CHECK(values(add(integers, integers, 2)) == Doubles{9, 15});
  CHECK(values(add(integers, floats, 0.5)) == Doubles{4.5, 7.5});
  CHECK(values(add(flags, flags, true)) == Doubles{1, 0});
  Tensor target = integers.clone();
  CHECK_THROWS_WITH_AS(add(integers, integers, 2.0),
                       "add: the result is int64, so alpha must be an integer, too; got 2", TypeError);
  CHECK_THROWS_AS(add(flags, flags, 1.0), TypeError);
  CHECK_THROWS_AS(target.add_(integers, 1.5), TypeError);
  CHECK_THROWS_AS(target.sub_(integers, 1.5), TypeError);
  CHECK_THROWS_AS(sub(integers, integers, true), TypeError);
  CHECK_THROWS_AS(rsub(integers, integers, true), TypeError);
  CHECK_THROWS_AS(add(floats, floats, rush::complex<double>(0, 1)), TypeError);
  CHECK(values(target) == Doubles{3, 5});
}

TEST_CASE("binary: float32 is float64 rounded where numbers are special") {
  const Tensor x = tensor({0.0, -0.0,  1.0,    -1.0,  2.0,    -2.0, 3.0,   -3.0, 2.5,   -0.5,
                           7.0, 100.0, -101.0, 1e-40, -1e-40, 1e38, -3e38, kInf, -kInf, kNan},
                          kFloat64)
                       .to(kFloat32);
  const Tensor a = x.view({20, 1}), b = x.view({1, 20});
  const auto check = [&](const char* name, const auto& op) {
    CAPTURE(name);
    const Doubles got = values(op(a, b)), want = values(op(a.to(kFloat64), b.to(kFloat64)).to(kFloat32));
    for (size_t i = 0; i < got.size(); ++i) {
      CAPTURE(values(x)[i / 20]);
      CAPTURE(values(x)[i % 20]);
      if (std::isnan(want[i]) || std::isinf(want[i])) {
        CHECK((got[i] == want[i] || (std::isnan(got[i]) && std::isnan(want[i]))));
      } else {
        CHECK(std::abs(got[i] - want[i]) <= 1e-6 * std::abs(want[i]) + 1e-45);
        CHECK(std::signbit(got[i]) == std::signbit(want[i]));
      }
    }
  };
  for (const BinaryOp* op : {&ops::hypot, &ops::xlogy, &ops::special_xlog1py, &ops::logaddexp, &ops::logaddexp2,
                             &ops::pow, &ops::copysign, &ops::mul, &ops::div}) {
    check(op->schema(), *op);
  }
  check("angle", [](const Tensor& p, const Tensor& q) {
    return angle(make_complex(p.expand({20, 20}).contiguous(), q.expand({20, 20}).contiguous()));
  });
  check("floor_divide", [](const Tensor& p, const Tensor& q) { return floor_divide(p, q); });
}

TEST_CASE("binary: numbers that stand for a whole operand") {
  for (const ScalarType dtype : {kFloat32, kBFloat16, kInt64}) {
    const Tensor six = full({}, 6, dtype), two = full({}, 2, dtype);
    const Tensor sixes = six.expand({3, 11}), twos = two.expand({3, 11});
    CHECK(values(sixes * twos) == Doubles(33, 12));
    CHECK(values(sixes / two) == Doubles(33, 3));
    CHECK(values(maximum(sixes, twos)) == Doubles(33, 6));
  }
}

TEST_CASE("binary: divisors, neighbours, steps") {
  CHECK(values(gcd(tensor({12, -18, 0, 0}), tensor({18, 12, 5, 0}))) == Doubles{6, 6, 5, 0});
  const Tensor lowest = full({1}, std::numeric_limits<int64_t>::min(), TensorOptions(kInt64));
  CHECK(gcd(lowest, tensor({-48})).item<int64_t>() == 16);
  CHECK(gcd(lowest, tensor({int64_t{3} << 50})).item<int64_t>() == int64_t{1} << 50);
  CHECK(gcd(tensor({-128}).to(kInt8), tensor({96}).to(kInt8)).item<int64_t>() == 32);
  CHECK(values(lcm(tensor({4, -6, 0}), tensor({6, 4, 5}))) == Doubles{12, 12, 0});
  CHECK(values(nextafter(tensor({1.0}, kFloat64), tensor({2.0}, kFloat64)))[0] == std::nextafter(1.0, 2.0));
  // Numbers of 16 bits: 7 and 10 bits of fraction; the smallest, and infinity's neighbours.
  for (const ScalarType dtype : {kBFloat16, kHalf}) {
    const double step = dtype == kHalf ? 1.0 / 1024 : 1.0 / 128, largest = dtype == kHalf ? 65504 : 0x1.fep127;
    const double least = dtype == kHalf ? 0x1p-24 : 0x1p-133;
    const Tensor from = tensor({1.0, 1.0, -1.0, 0.0, 0.0, kInf, largest, 3.0, std::nan("")}, kFloat64).to(dtype);
    const Tensor to = tensor({2.0, 0.0, -2.0, 1.0, -1.0, 0.0, kInf, 3.0, 1.0}, kFloat64).to(dtype);
    const Doubles next = values(nextafter(from, to));
    CHECK(Doubles(next.begin(), next.end() - 1) ==
          Doubles{1 + step, 1 - step / 2, -1 - step, least, -least, largest, kInf, 3});
    CHECK(std::isnan(next.back()));
  }
  CHECK(values(heaviside(tensor({-1.0, 0.0, 2.0}), tensor({0.5}))) == Doubles{0, 0.5, 1});
  CHECK_THROWS_AS(heaviside(tensor({1.0}), tensor({1})), TypeError);
  CHECK(values(xlogy(tensor({0.0, 2.0}, kFloat64), tensor({0.0, 1.0}, kFloat64))) == Doubles{0, 0});
  const Doubles xlog1py =
      values(special_xlog1py(tensor({0.0, 2.0, 0.0}, kFloat64), tensor({-1.0, 1e-20, kNan}, kFloat64)));
  CHECK(Doubles(xlog1py.begin(), xlog1py.end() - 1) == Doubles{0, 2e-20});
  CHECK(std::isnan(xlog1py.back()));
  CHECK(values(logaddexp(tensor({kInf, -kInf}, kFloat64), tensor({kInf, -kInf}, kFloat64))) == Doubles{kInf, -kInf});
  CHECK(values(copysign(tensor({1.0, -1.0}, kFloat64), -0.0)) == Doubles{-1, -1});
}

TEST_CASE("binary: complex numbers") {
  const complex<double> z(1, 2), w(-0.5, 1.5);
  const Tensor a = full({1}, z), b = full({1}, w);
  const auto item = [](const Tensor& t) { return t.item<complex<double>>(); };
  const auto close = [](complex<double> x, complex<double> y) { return abs(x - y) < 1e-6; };
  CHECK(close(item(a * b), z * w));
  CHECK(close(item(a / b), z / w));
  CHECK(close(item(pow(a, b)), rush::pow(z, w)));
  CHECK(close(item(logaddexp(a, b)), rush::log(rush::exp(z) + rush::exp(w))));
  CHECK(values(a == a) == Doubles{1});
  CHECK_THROWS_AS(a < b, NotImplementedError);
  CHECK(abs(a).scalar_type() == kFloat32);
  CHECK(close(item(conj(a)), complex<double>(1, -2)));
  CHECK(values(angle(a))[0] == doctest::Approx(std::atan2(2, 1)));
  CHECK(close(item(make_complex(tensor({1.0}), tensor({2.0}))), z));
  CHECK(close(item(polar(tensor({2.0}), tensor({0.5}))), rush::polar(2.0, 0.5)));
  CHECK(close(item(sgn(a)), z / complex<double>(rush::abs(z))));
  CHECK(values(imag(a)) == Doubles{2});
  CHECK_THROWS_AS(imag(tensor({1.0})), TypeError);
  // The gradient of a real function L of z = x + iy is dL/dx + i dL/dy: of |z|^2 = z conj(z), 2 z.
  const Tensor leaf = full({1}, z, TensorOptions(kComplex128)).requires_grad_();
  real(leaf * leaf.conj()).sum().backward();
  CHECK(close(item(leaf.grad()), z * complex<double>(2)));
  const auto through = [](const Tensors& in) {
    const Tensor c = make_complex(in[0], in[1]);
    return Tensors{abs(c),
                   angle(c),
                   real(c * c),
                   real(view_as_real(exp(c)).sum()),
                   real(c.sgn()),
                   real(c.conj() / (c + 3)),
                   real(polar(in[0], in[1])),
                   real(pow(c, c)),
                   real(tanh(c)),
                   real(sigmoid(c))};
  };
  check_gradient(through, {ramp({3}, 0.5, 1), ramp({3}, -1, 1)});
}

}  // namespace
