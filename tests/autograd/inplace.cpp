#include "autograd/inplace.h"

#include <doctest/doctest.h>

#include <vector>

#include "rushlight.h"
#include "tests/autograd/leaf.h"

using namespace rush;
using rush::testing::leaf_of;
using rush::testing::list;

TEST_CASE("in-place operators save what they overwrite when the gradient needs it") {
  const Tensor x = leaf_of({1, 2}), w = leaf_of({3, 4});
  const Tensor y = x * 2;
  y.mul_(w);
  y.sum().backward();
  CHECK(list(x.grad()) == std::vector<double>{6, 8});
  CHECK(list(w.grad()) == std::vector<double>{2, 4});
}

TEST_CASE("writing a view changes its base's history") {
  const Tensor x = leaf_of({1, 2, 3, 4});
  const Tensor y = x * 2;
  y[1].mul_(5);
  const Tensor upper = y.view({2, 2})[1];
  upper.add_(x.view({2, 2})[0]);  // y[2] += x[0], y[3] += x[1]
  (y * y).sum().backward();
  // y = (2, 20, 7, 10); dy/dx: y0 = 2 x0, y1 = 10 x1, y2 = 2 x2 + x0, y3 = 2 x3 + x1
  CHECK(list(y) == std::vector<double>{2, 20, 7, 10});
  CHECK(list(x.grad()) == std::vector<double>{2 * 2 * 2 + 2 * 7, 2 * 20 * 10 + 2 * 10, 2 * 7 * 2, 2 * 10 * 2});
}

TEST_CASE("a view made before its base was written shows the base's new history") {
  const Tensor w = leaf_of({3});
  const Tensor base = ones({2}, kFloat64);
  const Tensor view = base[0];
  CHECK_FALSE(view.requires_grad());
  base.mul_(w);
  CHECK(view.requires_grad());
  (view * 2).backward();
  CHECK(w.grad().item<double>() == 2);
}

TEST_CASE("copy_ into a view routes the gradient to the source and cuts it from the old value") {
  const Tensor x = leaf_of({1, 2}), s = leaf_of({5});
  const Tensor y = x * 1;
  y[0].copy_(s[0]);
  (y * y).sum().backward();
  CHECK(list(x.grad()) == std::vector<double>{0, 4});
  CHECK(s.grad().item<double>() == 10);
}

TEST_CASE("a saved tensor that was written since is reported with its operator's versions") {
  const Tensor x = leaf_of({1, 2});
  const Tensor y = x * 2;
  const Tensor z = y * y;
  y.add_(1);
  CHECK_THROWS_WITH_AS(z.sum().backward(),
                       "backward: a tensor of sizes (2) that MulBackward needs has been modified by an inplace "
                       "operation: it is at version 1, "
                       "expected version 0; with DetectAnomalyGuard the error names the call that saved it",
                       Error);
  // Through a view of what was saved, too.
  const Tensor a = x * 2;
  const Tensor b = a.exp();
  b[0].zero_();
  CHECK_THROWS_AS((b * 1).sum().backward(), Error);
}

TEST_CASE("what may not be written in place") {
  const Tensor x = leaf_of({1, 2});
  CHECK_THROWS_AS(x.mul_(2), Error);
  CHECK_THROWS_AS(x[0].mul_(2), Error);
  CHECK(list(x) == std::vector<double>{1, 2});
  {
    const NoGradGuard no_grad;
    x.mul_(2);
  }
  CHECK(list(x) == std::vector<double>{2, 4});
  CHECK(x.requires_grad());
  Tensor unrecorded;
  const Tensor y = x * 1;
  {
    const NoGradGuard no_grad;
    unrecorded = y[0];
  }
  CHECK_THROWS_AS(unrecorded.mul_(x[0]), Error);
  const Tensor part = zeros({4}).slice(0, 0, 4, 2).requires_grad_();  // a leaf, and a view of what is none
  CHECK_THROWS_AS(part.mul_(2), Error);
}

TEST_CASE("in-place operators on broadcast or overlapping targets fail and change nothing") {
  const Tensor a = ones({1}), b = ones({3});
  CHECK_THROWS_AS(a.add_(b), ValueError);
  CHECK_THROWS_AS(ones({1}).expand({3}).add_(b), ValueError);
  const Tensor i = ones({2}, kInt64);
  CHECK_THROWS_AS(i.add_(0.5), TypeError);
  CHECK(list(i.to(kFloat64)) == std::vector<double>{1, 1});
}

TEST_CASE("an operand that overlaps the target shifted is read before it is written") {
  const Tensor a = tensor({1.0, 2.0, 3.0, 4.0}, kFloat64);
  a.as_strided({3}, {1}, 1).add_(a.as_strided({3}, {1}, 0));
  CHECK(list(a) == std::vector<double>{1, 3, 5, 7});
}

TEST_CASE("gradients of gradients through in-place operators and views") {
  const Tensor x = tensor({0.3, -0.2, 0.5}, kFloat64).requires_grad_();
  const Tensor w = tensor({1.5, 0.7}, kFloat64).requires_grad_();
  const auto fn = [](const Tensors& in) {
    const Tensor y = in[0] * 2;
    y[1].mul_(in[1][0]);
    y.neg_();
    y[2].add_(in[1][1] * in[0][0]);
    return Tensors{y * y};
  };
  CHECK(autograd::gradcheck(fn, {x, w}));
  CHECK(autograd::gradgradcheck(fn, {x, w}));
}

TEST_CASE("a view whose base was written since brings its part of the gradient, whoever else used the base") {
  const Tensor x = tensor({0.4, -0.3, 0.9}, kFloat64).requires_grad_();
  // The view's function is made anew when it is used, after the function that uses it.
  const auto loss = [&] {
    Tensor y = x * 2;
    const Tensor view = y.narrow(0, 0, 2);
    y.mul_(3);
    const Tensor late = view * 5;
    return (y * 7).sum() + late.sum() + (view * late.detach()).sum() * 0;
  };
  const Tensor expected = tensor({72.0, 72.0, 42.0}, kFloat64);
  CHECK(equal(autograd::grad(loss(), x)[0], expected));
  loss().backward();
  CHECK(equal(x.grad(), expected));
}

TEST_CASE("a view that is made without recording requires a gradient where its base does, and none flows through it") {
  const Tensor x = ones({3}, kFloat64).requires_grad_();
  const Tensor y = x * 2;
  Tensor view, of_constant;
  {
    const NoGradGuard no_grad;
    view = y.narrow(0, 0, 2);
    of_constant = y.detach().narrow(0, 0, 2);
    view.mul_(3);
    CHECK_FALSE((view * 2).requires_grad());
  }
  CHECK(view.requires_grad());
  CHECK(view.is_leaf());
  CHECK_FALSE(of_constant.requires_grad());
  CHECK(equal(autograd::grad((view * 5).sum() + y.sum(), x)[0], full({3}, 2, kFloat64)));
  CHECK_THROWS_WITH_AS(view.zero_(), doctest::Contains("a view that was made without recording is written in place"),
                       Error);
  // As a leaf of its own it has a gradient.
  of_constant.requires_grad_();
  (of_constant * 5).sum().backward();
  CHECK(equal(of_constant.grad(), full({2}, 5, kFloat64)));
  view.requires_grad_();
  (view * 5).sum().backward();
  CHECK(equal(view.grad(), full({2}, 5, kFloat64)));
}
