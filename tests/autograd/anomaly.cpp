#include "autograd/debug/anomaly.h"

#include <doctest/doctest.h>

#include "rushlight.h"
#include "tests/autograd/leaf.h"
#include "tests/text.h"

using namespace rush;
using autograd::AnomalyMode;
using autograd::DetectAnomalyGuard;
using rush::testing::contains;
using rush::testing::leaf_of;

// Not in an unnamed namespace, and not inlined: their names are looked for in stacks.
namespace anomaly_test {

[[gnu::noinline]] Tensor square_root_of_nothing(const Tensor& x) {
  Tensor y = sqrt(x * 0.0);
  asm volatile("" : : "r"(&y) : "memory");  // keeps this from becoming a jump to sqrt
  return y;
}

[[gnu::noinline]] void write_in_place(const Tensor& x) {
  const Tensor y = x.exp();
  y.mul_(2);
  y.sum().backward();
}

}  // namespace anomaly_test

namespace {

template <class Fn>
std::string message_of(Fn fn) {
  try {
    fn();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("a nan gradient names the derivative, the operator and the function that called it") {
  const Tensor x = leaf_of({1, 2});
  const Tensor quiet = anomaly_test::square_root_of_nothing(x);
  quiet.sum().backward();
  CHECK(isnan(x.grad()).all().item<bool>());

  const DetectAnomalyGuard guard;
  const std::string message = message_of([&] { anomaly_test::square_root_of_nothing(x).sum().backward(); });
  // inf * 0 in the derivative of x * 0; the square root's own derivative is inf.
  CHECK(contains(message,
                 "backward: MulBackward returned nan in gradient 0 of sizes (2); its forward call was "
                 "aten::mul"));
  CHECK(contains(message, "called by "));
  CHECK(contains(message, "anomaly_test::square_root_of_nothing(rush::Tensor const&) ("));
  CHECK(message.find("rush::Derive<") == message.npos);
  CHECK(message.find('\n') == message.npos);
}

TEST_CASE("other errors of a derivative tell their forward call too, and keep their type") {
  const Tensor x = leaf_of({1, 2});
  const DetectAnomalyGuard guard;
  const std::string message = message_of([&] { anomaly_test::write_in_place(x); });
  CHECK(contains(message, "modified by an inplace operation"));
  CHECK(contains(message, "its forward call was aten::exp called by"));
  CHECK(contains(message, "anomaly_test::write_in_place"));

  struct Picky : autograd::Function<Picky> {
    static Tensor forward(autograd::AutogradContext*, const Tensor& x) { return x * 1.0; }
    static Tensors backward(autograd::AutogradContext*, Tensors) { RUSH_THROW(IndexError, "picky"); }
  };
  CHECK_THROWS_AS(Picky::apply(x).sum().backward(), IndexError);
  CHECK(
      contains(message_of([&] { Picky::apply(x).sum().backward(); }), "picky; its forward call was a custom function"));
}

TEST_CASE("in double backward the forward call of the derivative is told as well") {
  const Tensor x = tensor({0.0}, kFloat64).requires_grad_();
  const DetectAnomalyGuard guard;
  const Tensor d = autograd::grad(x.pow(1.5), x, {}, true, true)[0];  // 1.5 sqrt(x), whose derivative is inf at 0
  const std::string message = message_of([&] { (d * 0.0).backward(); });
  CHECK(contains(message, "that was part of the derivative of aten::pow"));
}

TEST_CASE("it works in place and through views") {
  const DetectAnomalyGuard guard;
  const Tensor x = leaf_of({1, 2});
  Tensor y = x * 1.0;
  y.narrow(0, 0, 1).mul_(0).sqrt_();
  CHECK(contains(message_of([&] { y.sum().backward(); }), "its forward call was aten::mul_"));
}

TEST_CASE("a graph made while it was off cannot tell; nan checks can be left out") {
  const Tensor x = leaf_of({1, 2});
  const Tensor y = (x * 0.0).sqrt().sum();
  {
    const DetectAnomalyGuard guard(false);
    CHECK(AnomalyMode::is_enabled());
    CHECK_FALSE(AnomalyMode::should_check_nan());
    y.backward({}, true);
  }
  CHECK_FALSE(AnomalyMode::is_enabled());
  CHECK(AnomalyMode::should_check_nan());
  AnomalyMode::set_enabled(true);
  CHECK(contains(message_of([&] { y.backward(); }), "anomaly mode must be on in the forward pass too"));
  AnomalyMode::set_enabled(false);
}
