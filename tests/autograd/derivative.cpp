// rush::derivative: a lambda as the derivative of an operator that a program makes.
#include "autograd/derivative.h"

#include <doctest/doctest.h>

#include "rushlight.h"

using namespace rush;

namespace {

using Combine = Tensor(const Tensor&, const std::optional<Tensor>&, double);

// x^2 a + y, from a front that autograd does not see into.
Tensor combine(const Tensor& x, const std::optional<Tensor>& y, double a) {
  const NoGradGuard no_grad;
  const Tensor product = x * x * a;
  return y ? product + *y : product;
}

Op<Combine>& registered(Op<Combine>& op) {
  registry().native(op, combine);
  return op;
}

Tensors derivative_of_combine(const Tensors& g, const Tensor& x, const std::optional<Tensor>& y, double a) {
  return {g[0] * x * (2 * a), y ? g[0] : Tensor()};
}

Tensor numbers() { return randn({3, 2}, TensorOptions(kFloat64)).requires_grad_(); }

}  // namespace

TEST_CASE("a lambda is the derivative, and is differentiated again") {
  static Op<Combine> op("test::combine(Tensor x, Tensor? y, float a) -> Tensor");
  derivative(registered(op), derivative_of_combine);
  const auto with_y = [](const Tensors& in) { return Tensors{op(in[0], in[1], 1.5)}; };
  const auto without_y = [](const Tensors& in) { return Tensors{op(in[0], std::nullopt, -2)}; };
  CHECK(autograd::gradcheck(with_y, {numbers(), numbers()}));
  CHECK(autograd::gradgradcheck(with_y, {numbers(), numbers()}));
  CHECK(autograd::gradcheck(without_y, {numbers()}));
  CHECK(autograd::gradgradcheck(without_y, {numbers()}));
}

TEST_CASE("what an operator of one's own saves is freed and guarded like any other's") {
  static Op<Combine> op("test::saving(Tensor x, Tensor? y, float a) -> Tensor");
  derivative(registered(op), derivative_of_combine);
  const Tensor x = numbers();
  const Tensor out = op(x, std::nullopt, 1).sum();
  out.backward();
  CHECK_THROWS_AS(out.backward(), Error);  // freed
  Tensor y = numbers() * 2;
  const Tensor later = op(y, std::nullopt, 1).sum();
  y.mul_(3);
  CHECK_THROWS_AS(later.backward(), Error);  // written since
  const NoGradGuard no_grad;
  CHECK(!op(x, std::nullopt, 1).requires_grad());
}

TEST_CASE("a derivative of too few gradients, and a second derivative of an operator, are refused") {
  static Op<Combine> op("test::refused(Tensor x, Tensor? y, float a) -> Tensor");
  derivative(registered(op), [](const Tensors& g, const Tensor&, const std::optional<Tensor>&, double) { return g; });
  CHECK_THROWS_WITH_AS(op(numbers(), numbers(), 1).sum().backward(),
                       doctest::Contains("test::refused: its derivative returned 1 gradients for 2 tensors"),
                       ValueError);
  CHECK_THROWS_WITH_AS(derivative(op, derivative_of_combine), doctest::Contains("has a derivative"), ValueError);
}
