#include "autograd/function.h"

#include <doctest/doctest.h>

#include "rushlight.h"

using namespace rush;
using autograd::AutogradContext;

namespace {

struct ScaledSquare : autograd::Function<ScaledSquare> {
  static Tensor forward(AutogradContext* ctx, const Tensor& x, double scale) {
    ctx->save_for_backward({x});
    ctx->saved_data["scale"] = scale;
    return x * x * scale;
  }
  static Tensors backward(AutogradContext* ctx, Tensors g) {
    const Tensor x = ctx->get_saved_variables()[0];
    return {g[0] * x * (2 * std::any_cast<double>(ctx->saved_data["scale"])), Tensor()};
  }
};

struct ExpAndTwice : autograd::Function<ExpAndTwice> {  // saves an output; has two outputs
  static Tensors forward(AutogradContext* ctx, const Tensor& x) {
    const Tensor e = x.exp();
    ctx->save_for_backward({e});
    return {e, x * 2};
  }
  static Tensors backward(AutogradContext* ctx, Tensors g) { return {g[0] * ctx->get_saved_variables()[0] + g[1] * 2}; }
};

struct ScaledBy : autograd::Function<ScaledBy> {
  static Tensor forward(autograd::AutogradContext* ctx, const Tensor& x, const std::optional<Tensor>& by) {
    ctx->save_for_backward({x, by.value_or(ones_like(x))});
    return by ? x * *by : x.clone();
  }
  static Tensors backward(autograd::AutogradContext* ctx, const Tensors& g) {
    const Tensors saved = ctx->get_saved_variables();
    return {g[0] * saved[1], g[0] * saved[0]};
  }
};

struct SumOf : autograd::Function<SumOf> {
  static Tensor forward(AutogradContext*, const Tensor& x, TensorList weights) {
    Tensor sum = x.clone();
    for (const Tensor& each : weights) sum += each * 2;
    return sum;
  }
  static Tensors backward(AutogradContext*, Tensors g) { return {g[0], g[0] * 2, g[0] * 2}; }
};

struct WrongCount : autograd::Function<WrongCount> {
  static Tensor forward(AutogradContext*, const Tensor& a, const Tensor& b) { return a * b; }
  static Tensors backward(AutogradContext*, Tensors g) { return {g[0]}; }
};

// Four gradients for two arguments. PyTorch, too, passes over undefined ones behind those of the arguments.
struct MoreGradients : autograd::Function<MoreGradients> {
  static Tensor forward(AutogradContext* ctx, const Tensor& x, bool defined) {
    ctx->saved_data["defined"] = defined;
    return x * 2;
  }
  static Tensors backward(AutogradContext* ctx, Tensors g) {
    return {g[0] * 2, Tensor(), Tensor(), ctx->saved_data["defined"].toBool() ? g[0] : Tensor()};
  }
};

struct Identity : autograd::Function<Identity> {
  static Tensor forward(AutogradContext*, const Tensor& x) { return x; }
  static Tensors backward(AutogradContext*, Tensors g) { return {g[0] * 3}; }
};

struct Head : autograd::Function<Head> {  // the first two of three
  static Tensor forward(AutogradContext*, const Tensor& x) { return x.narrow(0, 0, 2); }
  static Tensors backward(AutogradContext*, Tensors g) { return {cat({g[0] * 7, zeros({1})})}; }
};

struct Counted : autograd::Function<Counted> {
  static inline int backwards = 0;
  static Tensor forward(AutogradContext*, const Tensor& x) { return x * 2; }
  static Tensors backward(AutogradContext*, Tensors g) {
    ++backwards;
    return {g[0] * 2};
  }
};

struct WrongFormula : autograd::Function<WrongFormula> {
  static Tensor forward(AutogradContext*, const Tensor& x) { return x * x; }
  static Tensors backward(AutogradContext*, Tensors g) { return {g[0] * 2}; }
};

}  // namespace

TEST_CASE("a custom function is recorded with its own backward, twice differentiable") {
  const Tensor x = tensor({0.5, -1.0, 2.0}, kFloat64).requires_grad_();
  const auto fn = [](const Tensors& in) { return Tensors{ScaledSquare::apply(in[0], 3.0)}; };
  CHECK(autograd::gradcheck(fn, {x}));
  CHECK(autograd::gradgradcheck(fn, {x}));
  CHECK(ScaledSquare::apply(x, 3.0).grad_fn()->name().find("ScaledSquare") != std::string::npos);
  const NoGradGuard no_grad;
  CHECK_FALSE(ScaledSquare::apply(x, 3.0).requires_grad());
}

TEST_CASE("undefined gradients may follow those of the arguments, defined ones may not") {
  const Tensor x = tensor({0.5, -1.0}, kFloat64).requires_grad_();
  MoreGradients::apply(x, false).sum().backward();
  CHECK(x.grad().equal(full({2}, 2.0, kFloat64)));
  CHECK_THROWS_WITH_AS(MoreGradients::apply(x, true).sum().backward(),
                       doctest::Contains("backward returned 4 gradients for the 2 arguments of forward"), Error);
}

TEST_CASE("nothing is computed behind the tensors whose gradients are asked for") {
  const Tensor x = tensor({1.0, 2.0}).requires_grad_(), before = Counted::apply(x), middle = Counted::apply(before),
               after = (middle * middle).sum();
  const auto ask = [&](const Tensors& inputs) {
    Counted::backwards = 0;
    const Tensors gradients = autograd::grad({after}, inputs, {}, /*retain_graph=*/true);
    for (size_t i = 0; i < inputs.size(); ++i) {
      CHECK(gradients[i].equal(middle * (inputs[i].is_same(middle) ? 2 : inputs[i].is_same(before) ? 4 : 8)));
    }
    return Counted::backwards;
  };
  CHECK(ask({middle}) == 0);
  CHECK(ask({before}) == 1);
  CHECK(ask({middle, before}) == 1);
  CHECK(ask({middle, x}) == 2);
}

TEST_CASE("several outputs; those without a gradient are given zeros") {
  const Tensor x = tensor({0.5, -1.0}, kFloat64).requires_grad_();
  const auto fn = [](const Tensors& in) { return ExpAndTwice::apply(in[0]); };
  CHECK(autograd::gradcheck(fn, {x}));
  CHECK(autograd::gradgradcheck(fn, {x}));
  ExpAndTwice::apply(x)[1].sum().backward();
  CHECK(x.grad()[0].item<double>() == 2);
}

TEST_CASE("an input returned as it is keeps its own history") {
  const Tensor x = tensor({1.0}, kFloat64).requires_grad_();
  const Tensor y = Identity::apply(x);
  CHECK(x.is_leaf());
  (y + x).sum().backward();
  CHECK(x.grad().item<double>() == 4);
}

TEST_CASE("what a Function returns of its inputs' memory is not written in place while recording") {
  const Tensor x = ones({3}, requires_grad());
  const Tensor y = x * 1, same = Identity::apply(y), head = Head::apply(y);
  for (const Tensor& output : {same, head, head.narrow(0, 1, 1)}) {
    CHECK_THROWS_WITH_AS(output.mul_(3), doctest::Contains("an input that a Function returned"), Error);
  }
  {
    const NoGradGuard no_grad;
    CHECK_NOTHROW(head.mul_(1));
  }
  const Tensor copy = head.clone();
  copy.mul_(3);
  copy.sum().backward();
  CHECK(x.grad().equal(tensor({21.0f, 21.0f, 0.0f})));
}

TEST_CASE("an optional tensor gets its gradient where it is given") {
  const Tensor x = tensor({1.0, 2.0}, kFloat64).requires_grad_(), y = tensor({3.0, 4.0}, kFloat64).requires_grad_();
  ScaledBy::apply(x, std::optional<Tensor>(y)).sum().backward();
  CHECK(equal(x.grad(), y));
  CHECK(equal(y.grad(), x));
  ScaledBy::apply(x, std::optional<Tensor>()).sum().backward();
  CHECK(equal(x.grad(), y + 1));
}

TEST_CASE("each tensor of a TensorList gets a gradient") {
  const Tensor x = randn({3}), w = randn({3}).requires_grad_(), v = randn({3}).requires_grad_();
  const Tensor y = SumOf::apply(x, TensorList({w, v}));
  REQUIRE(y.requires_grad());
  const auto grads = autograd::grad({y.sum()}, {w, v});
  CHECK(grads[0].equal(full({3}, 2.0)));
  CHECK(grads[1].equal(full({3}, 2.0)));
  CHECK_THROWS_WITH_AS(SumOf::apply(x, TensorList({w})).sum().backward(), doctest::Contains("3 gradients for the 2"),
                       Error);
}

TEST_CASE("backward must return a gradient for every argument of forward") {
  const Tensor x = tensor({1.0}, kFloat64).requires_grad_();
  CHECK_THROWS_AS(WrongCount::apply(x, x).backward(), Error);
}

TEST_CASE("gradcheck finds a wrong formula and names the element") {
  const Tensor x = tensor({0.5, -1.0}, kFloat64).requires_grad_();
  const auto fn = [](const Tensors& in) { return Tensors{WrongFormula::apply(in[0])}; };
  CHECK_THROWS_AS(autograd::gradcheck(fn, {x}), Error);
  CHECK_THROWS_AS(autograd::gradcheck(fn, {ones({2}, requires_grad())}), TypeError);
  CHECK_THROWS_AS(autograd::gradcheck(fn, {ones({2}, kFloat64)}), ValueError);
}

TEST_CASE("saved_data hands over values under libtorch's names") {
  autograd::AutogradContext ctx;
  ctx.saved_data["scale"] = 2.5;
  ctx.saved_data["count"] = 3;
  ctx.saved_data["on"] = true;
  ctx.saved_data["sizes"] = std::vector<int64_t>{2, 3};
  ctx.saved_data["name"] = std::string("mean");
  ctx.saved_data["tensor"] = ones({2});
  CHECK(ctx.saved_data["scale"].toDouble() == 2.5);
  CHECK(ctx.saved_data["count"].toInt() == 3);
  CHECK(ctx.saved_data["on"].toBool());
  CHECK(ctx.saved_data["sizes"].toIntVector() == std::vector<int64_t>{2, 3});
  CHECK(ctx.saved_data["name"].toStringRef() == "mean");
  CHECK(ctx.saved_data["tensor"].toTensor().numel() == 2);
  ctx.saved_data["sizes"] = zeros({4, 5}).sizes();  // of a tensor that is gone
  CHECK(ctx.saved_data["sizes"].toIntList() == std::vector<int64_t>{4, 5});
  ctx.saved_data["name"] = "sum";
  CHECK(ctx.saved_data["name"].toStringRef() == "sum");
  CHECK_THROWS_AS(ctx.saved_data["name"].toDouble(), TypeError);
  CHECK_THROWS_AS(ctx.saved_data["scale"].toTensor(), TypeError);
  CHECK_THROWS_AS(ctx.saved_data["absent"].toInt(), TypeError);
}
