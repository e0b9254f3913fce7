#include <cmath>

#include "tests/ops/reduce/reduce_testing.h"

using namespace rush;
using namespace rush::testing;

TEST_CASE("var and std with every way to say the correction") {
  const Tensor x = tensor({1., 2., 4., 9.}, kFloat64);  // mean 4, squared distances 9 + 4 + 0 + 25
  CHECK(x.var().item<double>() == doctest::Approx(38. / 3));
  CHECK(x.var(false).item<double>() == doctest::Approx(38. / 4));
  CHECK(x.var(0, true).item<double>() == doctest::Approx(38. / 3));
  CHECK(x.std(0, false).item<double>() == doctest::Approx(std::sqrt(38. / 4)));
  CHECK(x.std(std::nullopt, Scalar(1.5)).item<double>() == doctest::Approx(std::sqrt(38. / 2.5)));
  const auto [var, mean] = var_mean(x, std::nullopt, Scalar(2));
  CHECK(var.item<double>() == doctest::Approx(19));
  CHECK(mean.item<double>() == doctest::Approx(4));
  const auto [deviation, same_mean] = std_mean(x, true);
  CHECK(deviation.item<double>() == doctest::Approx(std::sqrt(38. / 3)));
  CHECK(same_mean.item<double>() == doctest::Approx(4));
}

TEST_CASE("var of numbers far from zero keeps its digits") {
  const int64_t n = 100000;
  const Tensor x = zeros({n, 2}, kFloat32);
  for (int64_t i = 0; i < n; ++i) x.data_ptr<float>()[2 * i] = 10000.f + static_cast<float>(i % 2);
  CHECK(x.var(0, false)[0].item<double>() == doctest::Approx(0.25).epsilon(1e-6));
  CHECK(x.t().contiguous().var(1, false)[0].item<double>() == doctest::Approx(0.25).epsilon(1e-6));
  CHECK(x.select(1, 0).var(false).item<double>() == doctest::Approx(0.25).epsilon(1e-6));
}

TEST_CASE("var where too few elements are left") {
  CHECK(std::isnan(ones({1}).var().item<double>()));
  CHECK(std::isnan(zeros({0}).var().item<double>()));
  CHECK(tensor({1., 2.}).var(std::nullopt, Scalar(2)).item<double>() == kInf);
  CHECK(tensor({1., 2.}).var(std::nullopt, Scalar(3)).item<double>() == kInf);
  CHECK_THROWS_AS(tensor({1, 2}).var(), TypeError);
  CHECK_THROWS_AS(zeros({2}).std(1, true), IndexError);
}

TEST_CASE("var of complex numbers is that of both parts together") {
  const Tensor x = zeros({4}, kComplex128);
  auto* z = x.data_ptr<complex<double>>();
  z[0] = {1, 2}, z[1] = {3, -1}, z[2] = {0, 0}, z[3] = {4, 7};
  // Mean (2, 2); real distances 1 + 1 + 4 + 4, imaginary 0 + 9 + 4 + 25.
  const auto [var, mean] = var_mean(x, true);
  CHECK(var.item<double>() == doctest::Approx(48. / 3));
  CHECK(mean.item<complex<double>>() == complex<double>(2, 2));
  CHECK(x.view({2, 2}).std(0, false).sizes() == IntArrayRef(2));
  CHECK(x.std(false).item<double>() == doctest::Approx(std::sqrt(12)));
}

TEST_CASE("the second derivatives of the mean and variance of nothing are zero") {
  const auto check = [](const char* name, auto reduce) {
    CAPTURE(name);
    const Tensor x = zeros({0, 2}, kFloat64).requires_grad_(), result = reduce(x),
                 g = ones_like(result).requires_grad_();
    const Tensor grad = autograd::grad({result}, {x}, {g}, true, true)[0];
    CHECK(grad.sizes() == x.sizes());
    CHECK(equal(autograd::grad({grad.sum()}, {g})[0], zeros_like(g)));
  };
  check("mean", [](const Tensor& x) { return x.mean(); });
  check("mean of columns", [](const Tensor& x) { return x.mean(0); });
  check("var", [](const Tensor& x) { return x.var(); });
  check("var of columns", [](const Tensor& x) { return x.var(0); });
  check("var_mean", [](const Tensor& x) { return std::get<1>(var_mean(x)); });
}

TEST_CASE("derivatives of var") {
  const Tensors inputs[] = {{leaf({3, 4})}, {leaf(5)}, {leaf({4, 3}).detach().t().requires_grad_()}};
  for (const Tensors& in : inputs) {
    check_gradients([](const Tensors& x) { return Tensors{x[0].var()}; }, in);
    check_gradients([](const Tensors& x) { return Tensors{x[0].var(-1, Scalar(0.5), true)}; }, in);
    check_gradients(
        [](const Tensors& x) {
          const auto [var, mean] = var_mean(x[0], 0, false);
          return Tensors{var, mean};
        },
        in);
    check_gradients([](const Tensors& x) { return Tensors{std::get<1>(var_mean(x[0])).exp()}; }, in);
    check_gradients([](const Tensors& x) { return Tensors{x[0].std(0, Scalar(0.5))}; }, in);
    check_gradients(
        [](const Tensors& x) {
          const auto [deviation, mean] = std_mean(x[0], -1, false, true);
          return Tensors{deviation, mean};
        },
        in);
  }
}

TEST_CASE("the derivative of std is 0 where nothing varies") {
  const Tensor x = ones({3}, kFloat64).requires_grad_();
  x.std().backward();
  CHECK(values(x.grad()) == Doubles{0, 0, 0});
}
