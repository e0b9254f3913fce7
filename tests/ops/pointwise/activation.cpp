#include "core/ops/pointwise/activation.h"

#include <cmath>
#include <limits>

#include "tests/ops/index/index_testing.h"

namespace {

using namespace rush;
using namespace rush::testing;

struct Activation {
  const char* name;
  Tensor (*fn)(const Tensor&);
  double (*reference)(double);
};
double sigmoid_of(double x) { return 1 / (1 + std::exp(-x)); }
double held(double x, double low, double high) { return std::min(std::max(x, low), high); }
const Activation kActivations[] = {
    {"relu", [](const Tensor& x) { return relu(x); }, [](double x) { return std::max(x, 0.0); }},
    {"threshold", [](const Tensor& x) { return threshold(x, 0.3, -2); }, [](double x) { return x > 0.3 ? x : -2; }},
    {"gelu", [](const Tensor& x) { return gelu(x); },
     [](double x) { return x / 2 * (1 + std::erf(x / std::sqrt(2.0))); }},
    {"gelu tanh", [](const Tensor& x) { return gelu(x, "tanh"); },
     [](double x) { return x / 2 * (1 + std::tanh(std::sqrt(2 / std::acos(-1.0)) * (x + 0.044715 * x * x * x))); }},
    {"silu", [](const Tensor& x) { return silu(x); }, [](double x) { return x * sigmoid_of(x); }},
    {"mish", [](const Tensor& x) { return mish(x); }, [](double x) { return x * std::tanh(std::log1p(std::exp(x))); }},
    {"leaky_relu", [](const Tensor& x) { return leaky_relu(x, 0.1); }, [](double x) { return x > 0 ? x : x * 0.1; }},
    {"elu", [](const Tensor& x) { return elu(x, 1.5, 0.7, 1.2); },
     [](double x) { return 0.7 * (x > 0 ? x : 1.5 * std::expm1(1.2 * x)); }},
    {"selu", [](const Tensor& x) { return selu(x); },
     [](double x) { return 1.0507009873554804934 * (x > 0 ? x : 1.6732632423543772848 * std::expm1(x)); }},
    {"celu", [](const Tensor& x) { return celu(x, 0.8); },
     [](double x) { return x > 0 ? x : 0.8 * std::expm1(x / 0.8); }},
    {"softplus", [](const Tensor& x) { return softplus(x, 2, 3); },
     [](double x) { return 2 * x > 3 ? x : std::log1p(std::exp(2 * x)) / 2; }},
    {"log_sigmoid", [](const Tensor& x) { return log_sigmoid(x); }, [](double x) { return -std::log1p(std::exp(-x)); }},
    {"hardtanh", [](const Tensor& x) { return hardtanh(x, -0.5, 1.5); }, [](double x) { return held(x, -0.5, 1.5); }},
    {"relu6", [](const Tensor& x) { return relu6(x * 3); }, [](double x) { return held(x * 3, 0, 6); }},
    {"hardswish", [](const Tensor& x) { return hardswish(x); }, [](double x) { return x * held(x + 3, 0, 6) / 6; }},
    {"hardsigmoid", [](const Tensor& x) { return hardsigmoid(x); }, [](double x) { return held(x + 3, 0, 6) / 6; }},
    {"hardshrink", [](const Tensor& x) { return hardshrink(x); }, [](double x) { return std::abs(x) > 0.5 ? x : 0; }},
    {"softshrink", [](const Tensor& x) { return softshrink(x); },
     [](double x) { return x > 0.5    ? x - 0.5
                           : x < -0.5 ? x + 0.5
                                      : 0; }},
    {"rrelu", [](const Tensor& x) { return rrelu(x); }, [](double x) { return x > 0 ? x : x * (1. / 8 + 1. / 3) / 2; }},
};

// Between -4 and 4, away from the corners at multiples of 1/2.
Tensor inputs(IntArrayRef sizes, ScalarType dtype = kFloat64) {
  const Tensor t = zeros(sizes, kFloat64);
  for (int64_t i = 0; i < t.numel(); ++i) {
    t.data_ptr<double>()[i] = static_cast<double>(i * 7 % 17 - 8) / 2 + 0.15 + 0.2 * static_cast<double>(i % 2);
  }
  return t.to(dtype);
}

void check_activation(const Activation& a, const Tensor& x) {
  const Tensor y = a.fn(x);
  CHECK(y.sizes() == x.sizes());
  CHECK(y.scalar_type() == x.scalar_type());
  const Doubles in = values(x), out = values(y);
  const double tolerance = x.scalar_type() == kFloat64 ? 1e-12 : x.scalar_type() == kFloat32 ? 2e-6 : 1.6e-2;
  for (size_t i = 0; i < in.size(); ++i) {
    CAPTURE(in[i]);
    const double want = a.reference(in[i]);
    CHECK(std::abs(out[i] - want) <= tolerance * (1 + std::abs(want)));
  }
}

TEST_CASE("activation: values in every floating point dtype and layout") {
  for (const Activation& a : kActivations) {
    CAPTURE(a.name);
    for (const ScalarType dtype : {kFloat64, kFloat32, kFloat16, kBFloat16}) {
      check_activation(a, inputs({37}, dtype));
      check_activation(a, inputs({3, 6}, dtype).t());
      check_activation(a, inputs({5, 3}, dtype).select(1, 1));
      check_activation(a, inputs({}, dtype));
      check_activation(a, inputs({0, 2}, dtype));
    }
    CHECK(a.fn(empty({2, 3}, kMeta)).sizes() == IntArrayRef({2, 3}));
    const Tensor nan = full({20}, std::numeric_limits<double>::quiet_NaN());
    CHECK((std::isnan(values(a.fn(nan))[19])));
  }
}

TEST_CASE("activation: derivatives, twice") {
  for (const Activation& a : kActivations) {
    CAPTURE(a.name);
    const auto fn = [&](const Tensors& in) { return Tensors{a.fn(in[0])}; };
    check_gradients(fn, {inputs({17}).requires_grad_()});
    check_gradients(fn, {inputs({2, 3}).t().requires_grad_()});
    check_gradients(fn, {inputs({}).requires_grad_()});
  }
}

TEST_CASE("activation: the second derivative of elu at 0 is 0, as on its right") {
  const Tensor x = tensor({-1., 0., 1.}).to(kFloat64).requires_grad_();
  const Tensor first = autograd::grad({elu(x).sum()}, {x}, {}, /*retain_graph=*/true, /*create_graph=*/true)[0];
  const Doubles second = values(autograd::grad({first.sum()}, {x})[0]);
  CHECK(second[0] == doctest::Approx(std::exp(-1.)));
  CHECK(second[1] == 0);
  CHECK(second[2] == 0);
}

TEST_CASE("activation: derivatives of complex numbers, twice") {
  for (Tensor (*fn)(const Tensor&) : {&rush::tanh, &rush::sigmoid, &rush::silu}) {
    check_gradients([=](const Tensors& in) { return Tensors{fn(in[0])}; }, {complex_leaf({5})});
  }
}

TEST_CASE("activation: in place, with the derivative of what was overwritten") {
  using Inplace = Tensor& (*)(Tensor&);
  const std::pair<Inplace, Tensor (*)(const Tensor&)> pairs[] = {
      {[](Tensor& x) -> Tensor& { return relu_(x); }, [](const Tensor& x) { return relu(x); }},
      {[](Tensor& x) -> Tensor& { return gelu_(x); }, [](const Tensor& x) { return gelu(x); }},
      {[](Tensor& x) -> Tensor& { return silu_(x); }, [](const Tensor& x) { return silu(x); }},
      {[](Tensor& x) -> Tensor& { return mish_(x); }, [](const Tensor& x) { return mish(x); }},
      {[](Tensor& x) -> Tensor& { return elu_(x); }, [](const Tensor& x) { return elu(x); }},
      {[](Tensor& x) -> Tensor& { return celu_(x, 2.0); }, [](const Tensor& x) { return celu(x, 2.0); }},
      {[](Tensor& x) -> Tensor& { return selu_(x); }, [](const Tensor& x) { return selu(x); }},
      {[](Tensor& x) -> Tensor& { return leaky_relu_(x, -0.5); }, [](const Tensor& x) { return leaky_relu(x, -0.5); }},
      {[](Tensor& x) -> Tensor& { return threshold_(x, 0.2, 1); },
       [](const Tensor& x) { return threshold(x, 0.2, 1); }},
      {[](Tensor& x) -> Tensor& { return hardtanh_(x); }, [](const Tensor& x) { return hardtanh(x); }},
      {[](Tensor& x) -> Tensor& { return relu6_(x); }, [](const Tensor& x) { return relu6(x); }},
      {[](Tensor& x) -> Tensor& { return hardswish_(x); }, [](const Tensor& x) { return hardswish(x); }},
      {[](Tensor& x) -> Tensor& { return hardsigmoid_(x); }, [](const Tensor& x) { return hardsigmoid(x); }},
  };
  for (const auto& [inplace, fresh] : pairs) {
    Tensor x = inputs({2, 9});
    const Tensor want = fresh(x);
    CHECK(values(inplace(x)) == values(want));
    check_gradients(
        [inplace = inplace](const Tensors& in) {
          Tensor copy = in[0] * 1;
          return Tensors{inplace(copy)};
        },
        {inputs({9}).requires_grad_()});
  }
}

TEST_CASE("activation: glu and prelu") {
  const Tensor x = inputs({2, 4, 3});
  const Doubles got = values(glu(x, 1)), in = values(x);
  for (size_t i = 0; i < 2; ++i) {
    for (size_t j = 0; j < 2; ++j) {
      for (size_t k = 0; k < 3; ++k) {
        CHECK(got[i * 6 + j * 3 + k] ==
              doctest::Approx(in[i * 12 + j * 3 + k] * sigmoid_of(in[i * 12 + (j + 2) * 3 + k])));
      }
    }
  }
  CHECK_THROWS_AS(glu(x), ValueError);
  CHECK_THROWS_AS(glu(scalar_tensor(1.0)), ValueError);
  check_gradients([](const Tensors& in) { return Tensors{glu(in[0], 1)}; }, {inputs({2, 4, 2}).requires_grad_()});
  check_gradients([](const Tensors& in) { return Tensors{glu(in[0], 0)}; }, {inputs({3, 4}).t().requires_grad_()});

  const Tensor weight = tensor({0.1, 0.2, 0.3, 0.4}, kFloat64);
  const Doubles above = values(prelu(x, weight));
  for (size_t i = 0; i < in.size(); ++i) {
    CHECK(above[i] == doctest::Approx(in[i] > 0 ? in[i] : in[i] * 0.1 * static_cast<double>(i / 3 % 4 + 1)));
  }
  CHECK_THROWS_AS(prelu(x, tensor({0.1, 0.2}, kFloat64)), ValueError);
  CHECK_THROWS_AS(prelu(x, tensor({0.1})), TypeError);
  CHECK(prelu(scalar_tensor(-1.0), tensor({0.5})).sizes() == IntArrayRef({}));
  const auto fn = [](const Tensors& in) { return Tensors{prelu(in[0], in[1])}; };
  check_gradients(fn, {inputs({2, 4, 3}).requires_grad_(), weight.clone().requires_grad_()});
  check_gradients(fn, {inputs({5}).requires_grad_(), tensor({0.3}, kFloat64).requires_grad_()});
}

TEST_CASE("activation: integers and bad arguments") {
  const Tensor n = tensor({-2, 0, 3, 9});
  CHECK(values(relu(n)) == Doubles{0, 0, 3, 9});
  CHECK(relu(n).scalar_type() == kInt64);
  CHECK(values(relu6(n)) == Doubles{0, 0, 3, 6});
  CHECK(values(threshold(n, 0, -1)) == Doubles{-1, -1, 3, 9});
  CHECK_THROWS_AS(gelu(n), NotImplementedError);
  CHECK_THROWS_AS(relu(tensor({true})), NotImplementedError);
  CHECK_THROWS_AS(gelu(tensor({1.0}), "sigmoid"), ValueError);
  CHECK_THROWS_AS(celu(tensor({1.0}), 0), ValueError);
  CHECK_THROWS_AS(hardtanh(tensor({1.0}), 2, 1), ValueError);
  CHECK_THROWS_AS(softshrink(tensor({1.0}), -1), ValueError);
  CHECK_THROWS_AS(rrelu(tensor({1.0}), 0.1, 0.3, true), NotImplementedError);
  CHECK_THROWS_AS(relu(Tensor()), Error);
  // Far out, where exp overflows.
  CHECK(values(log_sigmoid(tensor({-1000.0, 1000.0}))) == Doubles{-1000, 0});
  CHECK(values(softplus(tensor({1000.0}))) == Doubles{1000});
  CHECK(values(mish(tensor({1000.0}))) == Doubles{1000});
  CHECK(values(silu(tensor({-1000.0})))[0] == 0);
}

}  // namespace
