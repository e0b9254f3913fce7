#include "core/ops/distance.h"

#include <limits>

#include "tests/ops/index_testing.h"

namespace {

using namespace rush;
using namespace rush::testing;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

TEST_CASE("cdist: every pair's norm") {
  const Tensor a = leaf({2, 3, 4}).detach(), b = leaf({2, 5, 4}, 1).detach();
  const Tensor difference = (a.unsqueeze(2) - b.unsqueeze(1)).abs();
  for (double p : {0.5, 1.0, 1.5, 2.0, 3.0}) {
    const Tensor expected = difference.pow(p).sum(-1).pow(1 / p);
    CHECK((cdist(a, b, p) - expected).abs().max().item<double>() < 1e-12);
  }
  CHECK((cdist(a, b, kInfinity) - difference.amax(-1)).abs().max().item<double>() == 0);
  CHECK(values(cdist(tensor({1.0, 2.0}).view({1, 2}), tensor({1.0, 5.0}).view({1, 2}), 0)) == Doubles{1});
  CHECK(cdist(a, b.select(0, 0)).sizes() == IntArrayRef({2, 3, 5}));
  CHECK(cdist(zeros({0, 4}), zeros({5, 4})).sizes() == IntArrayRef({0, 5}));
  CHECK(values(cdist(zeros({1, 0}), zeros({2, 0}))) == Doubles{0, 0});
}

TEST_CASE("cdist: derivatives") {
  for (double p : {1.0, 1.5, 2.0, 3.0, kInfinity}) {
    CAPTURE(p);
    check_gradients([p](const Tensors& t) { return Tensors{cdist(t[0], t[1], p)}; }, {leaf({2, 3}), leaf({4, 3}, 1)});
  }
  check_gradients([](const Tensors& t) { return Tensors{cdist(t[0], t[1])}; }, {leaf({2, 2, 3}), leaf({1, 3, 3}, 1)});
  // No slope at distance zero.
  for (double p : {0.5, 1.0, 2.0, 3.0}) {
    const Tensor x = ones({1, 3}, kFloat64).requires_grad_();
    const Tensors grads = autograd::grad({cdist(x, ones({1, 3}, kFloat64), p)}, {x}, {ones({1, 1}, kFloat64)});
    CHECK(values(grads[0]) == Doubles{0, 0, 0});
  }
}

TEST_CASE("cdist: bad input") {
  CHECK_THROWS_AS(cdist(ones({2, 3}), ones({2, 4})), ValueError);
  CHECK_THROWS_AS(cdist(ones({3}), ones({2, 3})), ValueError);
  CHECK_THROWS_AS(cdist(ones({2, 3}), ones({2, 3}), -1), ValueError);
  CHECK_THROWS_AS(cdist(ones({2, 3}), ones({2, 3}), 2, 3), ValueError);
  CHECK_THROWS_AS(cdist(ones({2, 3}, kInt64), ones({2, 3}, kInt64)), TypeError);
  CHECK_THROWS_AS(cdist(ones({2, 3}), ones({2, 3}, kFloat64)), TypeError);
}

}  // namespace
