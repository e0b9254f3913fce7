#include "core/ops/nn/linear.h"

#include <array>

#include "tests/ops/nn/nn_testing.h"

namespace {

using namespace rush;
using namespace rush::testing;

TEST_CASE("linear: a product with the transposed weight, over any leading dimensions") {
  const Tensor w = leaf({5, 4}, 1).detach(), b = leaf({5}, 2).detach();
  for (const DimVector& sizes :
       {DimVector{4}, DimVector{3, 4}, DimVector{2, 3, 4}, DimVector{2, 1, 3, 4}, DimVector{0, 4}}) {
    const Tensor x = leaf(sizes).detach();
    const Tensor y = linear(x, w, b);
    CHECK(y.sizes().slice(0, sizes.size() - 1) == x.sizes().slice(0, sizes.size() - 1));
    CHECK(y.size(-1) == 5);
    if (x.numel() == 0) continue;
    CHECK(distance_between(y, x.matmul(w.t()) + b) < 1e-14);
    CHECK(distance_between(linear(x, w), x.matmul(w.t())) < 1e-14);
  }
  // Strides that no view can merge, a weight given transposed, a weight that is a vector.
  const Tensor x = leaf({3, 2, 4}).detach().transpose(0, 1);
  CHECK(distance_between(linear(x, w, b), x.contiguous().matmul(w.t()) + b) < 1e-14);
  CHECK(distance_between(linear(x, w.t().contiguous().t(), b), x.matmul(w.t()) + b) < 1e-14);
  CHECK(linear(x, w.select(0, 0)).sizes() == IntArrayRef({2, 3}));
  CHECK(distance_between(linear(x, w.select(0, 0)), x.matmul(w.select(0, 0))) < 1e-14);
}

TEST_CASE("linear, bilinear: derivatives") {
  const auto fn = [](const Tensors& t) { return Tensors{linear(t[0], t[1], t[2])}; };
  check_gradients(fn, {leaf({3, 4}), leaf({5, 4}, 1), leaf({5}, 2)});
  check_gradients(fn, {leaf({2, 2, 4}), leaf({3, 4}, 1), leaf({3}, 2)});
  check_gradients([](const Tensors& t) { return Tensors{linear(t[0], t[1])}; }, {leaf({2, 4}), leaf({4}, 1)});
  check_gradients([](const Tensors& t) { return Tensors{linear(t[0].t(), t[1].t())}; },
                  {leaf({4, 2}), leaf({4, 3}, 1)});
  check_gradients([](const Tensors& t) { return Tensors{bilinear(t[0], t[1], t[2], t[3])}; },
                  {leaf({2, 3}), leaf({2, 2}, 1), leaf({4, 3, 2}, 2), leaf({4}, 3)});
}

TEST_CASE("linear: gradients where there are no outputs, no features or no rows") {
  for (const auto [rows, in, out] : {std::array<int64_t, 3>{2, 4, 0}, {2, 0, 3}, {0, 4, 3}}) {
    CAPTURE(out);
    const Tensor x = leaf({rows, in}), w = leaf({out, in}, 1), b = leaf({out}, 2);
    linear(x, w, b).sum().backward();
    CHECK(equal(x.grad(), w.detach().sum(0).expand({rows, in})));
    CHECK(equal(w.grad(), x.detach().sum(0).expand({out, in})));
    CHECK(equal(b.grad(), full({out}, static_cast<double>(rows), x.options())));
  }
}

TEST_CASE("bilinear: a form for each output") {
  const Tensor x = leaf({2, 3, 4}).detach(), y = leaf({2, 3, 5}, 1).detach(), w = leaf({6, 4, 5}, 2).detach();
  const Tensor out = bilinear(x, y, w);
  CHECK(out.sizes() == IntArrayRef({2, 3, 6}));
  for (int64_t k = 0; k < 6; ++k) {
    const Tensor form = (x.matmul(w.select(0, k)) * y).sum(-1);
    CHECK(distance_between(out.select(-1, k), form) < 1e-14);
  }
}

TEST_CASE("linear: meta device and bad input") {
  CHECK(linear(empty({2, 3, 4}, kMeta), empty({5, 4}, kMeta)).sizes() == IntArrayRef({2, 3, 5}));
  const Tensor x = ones({2, 4}), w = ones({5, 4});
  CHECK_THROWS_WITH_AS(
      linear(ones({2, 3}), w),
      "linear: mat1 and mat2 shapes cannot be multiplied (2x3 and 4x5): an input (2, 3) has 3 features against 4 of a "
      "weight (5, 4)",
      ValueError);
  CHECK_THROWS_AS(linear(x, w, ones({4})), ValueError);
  CHECK_THROWS_AS(linear(x, w.to(kFloat64)), TypeError);
  CHECK_THROWS_AS(linear(x, w, ones({5}, kFloat64)), TypeError);
  CHECK_THROWS_AS(linear(x, ones({1, 5, 4})), ValueError);
  CHECK_THROWS_AS(bilinear(x, ones({3, 4}), ones({5, 4, 4})), ValueError);
}

}  // namespace
