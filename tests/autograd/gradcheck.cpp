#include "autograd/gradcheck.h"

#include <doctest/doctest.h>

#include "rushlight.h"

using namespace rush;
using autograd::gradcheck;
using autograd::gradgradcheck;

namespace {

// factor * x * x, whose derivative claims to be `claimed(x)`.
struct Parabola : autograd::Function<Parabola> {
  static Tensor forward(autograd::AutogradContext* ctx, const Tensor& x, Tensor (*claimed)(const Tensor&)) {
    ctx->save_for_backward({x});
    ctx->saved_data["claimed"] = reinterpret_cast<int64_t>(claimed);
    return x * x;
  }
  static Tensors backward(autograd::AutogradContext* ctx, const Tensors& grads) {
    const auto claimed = reinterpret_cast<Tensor (*)(const Tensor&)>(ctx->saved_data["claimed"].toInt());
    return {grads[0] * claimed(ctx->get_saved_variables()[0]), Tensor()};
  }
};

Tensor right(const Tensor& x) { return 2 * x; }
Tensor wrong(const Tensor& x) { return 2.1 * x; }
Tensor constant(const Tensor& x) { return (2 * x).detach(); }
Tensor by_memory(const Tensor& x) { return 2 * x.as_strided(x.sizes(), {3, 1}); }

template <Tensor (*claimed)(const Tensor&)>
Tensors parabola(const Tensors& inputs) {
  return {Parabola::apply(inputs[0], claimed)};
}

}  // namespace

TEST_CASE("gradcheck tells right derivatives from wrong ones") {
  const Tensor x = tensor({1.0, 2.0, -3.0, 0.5, 4.0, -1.0}, kFloat64).reshape({2, 3}).requires_grad_();
  CHECK(gradcheck(parabola<right>, {x}));
  CHECK(gradgradcheck(parabola<right>, {x}));
  CHECK_THROWS_WITH_AS(gradcheck(parabola<wrong>, {x}),
                       doctest::Contains("gradcheck: d output 0[0] / d input 0[0] is 2.1, finite differences give 2"),
                       Error);
  CHECK(gradcheck(parabola<constant>, {x}));
  CHECK_THROWS_AS(gradgradcheck(parabola<constant>, {x}), Error);
}

TEST_CASE("gradcheck finds a derivative that takes its input's memory for contiguous") {
  const Tensor x = tensor({1.0, 2.0, -3.0, 0.5, 4.0, -1.0}, kFloat64).reshape({2, 3}).requires_grad_();
  CHECK_THROWS_WITH_AS(gradcheck(parabola<by_memory>, {x}), doctest::Contains("with other strides of the inputs"),
                       Error);
  autograd::GradcheckOptions options;
  options.any_layout = false;
  CHECK(gradcheck(parabola<by_memory>, {x}, options));
}

TEST_CASE("gradcheck refuses what it cannot check") {
  const Tensor x = ones({2}, kFloat64);
  const auto same = [](const Tensors& inputs) { return inputs; };
  CHECK_THROWS_WITH_AS(gradcheck(same, {x}), doctest::Contains("no input requires a gradient"), ValueError);
  CHECK_THROWS_AS(gradcheck(same, {ones({2}, kFloat32).requires_grad_()}), TypeError);
  CHECK_THROWS_WITH_AS(gradcheck(same, {ones({1}, kFloat64).expand({3}).detach().requires_grad_()}),
                       doctest::Contains("share memory"), ValueError);
  const auto integers = [](const Tensors& inputs) { return Tensors{inputs[0].to(kInt64)}; };
  CHECK_THROWS_WITH_AS(gradcheck(integers, {ones({2}, kFloat64).requires_grad_()}),
                       doctest::Contains("no differentiable output"), ValueError);
}
