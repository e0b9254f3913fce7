#include "tests/ops/reduce/reduce_testing.h"

using namespace rush;
using namespace rush::testing;

TEST_CASE("norms of complex numbers are those of their magnitudes") {
  const Tensor z = zeros({2}, kComplex128);
  z.data_ptr<complex<double>>()[0] = {3, 4};
  z.data_ptr<complex<double>>()[1] = {0, -12};
  CHECK(z.norm().item<double>() == doctest::Approx(13));
  CHECK(z.norm(1).item<double>() == doctest::Approx(17));
  CHECK(z.norm(kInf).item<double>() == doctest::Approx(12));
  CHECK(z.norm(-kInf).item<double>() == doctest::Approx(5));
  CHECK(z.norm(0).item<double>() == 2);
  CHECK(z.norm().scalar_type() == kFloat64);
}

TEST_CASE("the overloads of norm, and dist") {
  const Tensor x = tensor({3., 4.});
  CHECK(x.norm().item<double>() == 5);
  CHECK(x.norm(std::nullopt, kFloat64).scalar_type() == kFloat64);
  CHECK(x.norm(1, 0, true).sizes() == IntArrayRef(1));
  CHECK(x.norm(1, 0, true, kFloat64).item<double>() == 7);
  CHECK(dist(x, tensor({0., 0.})).item<double>() == 5);
  CHECK(linalg_vector_norm(x, 2, 0).dim() == 0);
  CHECK(x.to(kBFloat16).norm().scalar_type() == kBFloat16);
  CHECK_THROWS_AS(tensor({1, 2}).norm(), TypeError);
  CHECK_THROWS_AS(x.norm(2, kFloat16), TypeError);
  CHECK_THROWS_AS(x.norm(2, kComplex64), TypeError);
}

TEST_CASE("renorm scales down what is too long") {
  const Tensor x = tensor({3., 4., 0.3, 0.4}, kFloat64).view({2, 2});
  CHECK(close(values(x.renorm(2, 0, 1)), {0.6, 0.8, 0.3, 0.4}, 1e-6));
  Tensor y = x.clone();
  y.renorm_(kInf, 0, 2);
  CHECK(close(values(y), {1.5, 2, 0.3, 0.4}, 1e-6));
  CHECK_THROWS_AS(x.renorm(0, 0, 1), ValueError);
  CHECK_THROWS_AS(x.renorm(2, 0, -1), ValueError);
  CHECK_THROWS_AS(x[0].renorm(2, 0, 1), ValueError);
  CHECK_THROWS_AS(x.renorm(2, 2, 1), IndexError);
}

TEST_CASE("derivatives of norms") {
  for (double p : {0.5, 1., 1.5, 2., 3.5, kInf, -kInf, -1.}) {
    CAPTURE(p);
    for (const Tensor& x : {leaf({3, 4}, 0.5), leaf({4, 3}, 0.5).detach().t().requires_grad_(), leaf({}, 0.5)}) {
      check_gradients([=](const Tensors& in) { return Tensors{in[0].norm(p), in[0].norm(p, -1, true)}; }, {x});
    }
  }
  check_gradients([](const Tensors& in) { return Tensors{dist(in[0], in[1], 3)}; }, {leaf({3, 4}), leaf(4, 0.4)});
  check_gradients(
      [](const Tensors& in) {
        return Tensors{in[0].renorm(2, 1, 0.5), (in[0] * 1).renorm_(1, 0, 2)};
      },
      {leaf({3, 4}, 0.5)});
}

TEST_CASE("the derivative of a norm of zeros is 0") {
  for (double p : {1., 1.5, 2., 3.}) {
    const Tensor x = zeros({3}, kFloat64).requires_grad_();
    x.norm(p).backward();
    CHECK(values(x.grad()) == Doubles{0, 0, 0});
  }
}
