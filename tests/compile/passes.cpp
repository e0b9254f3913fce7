// The passes that know nothing of the operators: autograd/compile/passes.cpp.
#include <doctest/doctest.h>

#include <vector>

#include "rushlight.h"
#include "tests/compile/graph_calls.h"

using namespace rush;

TEST_CASE("calls with the same numbers are one, and 0 is not -0") {
  const NoGradGuard no_grad;
  const auto products = [](double a, double b) {
    auto f = compile([=](const Tensor& x) { return (x * a).exp() + (x * b).reciprocal(); }, {.fuse = false});
    const Tensor x = randn({5});
    CHECK(f(x).equal((x * a).exp() + (x * b).reciprocal()));
    return testing::calls_of(f.graph(), "aten::mul.Tensor");
  };
  CHECK(products(3.5, 3.5) == 1);
  CHECK(products(3.5, 2.5) == 2);
  CHECK(products(0., -0.) == 2);
}

TEST_CASE("sums by one index find its order once on a GPU") {
  const NoGradGuard no_grad;
  const Tensor x = randn({50, 3}), weights = randn({50, 1});
  Tensor index = randint(0, 20, {50}, TensorOptions(kInt64));
  const auto orders = [&](bool writes) {
    const auto sums = [=](const Tensor& in, Tensor at) {
      const Tensor first = zeros({20, 3}).index_add(0, at, in);
      if (writes) at.copy_(at.flip(0));
      return first * 2 + ones({20, 3}).index_add(0, at, in * weights) + zeros({20, 3}).index_add(0, at, in, 0.5);
    };
    auto f = compile(sums);
    CHECK(f(x, index.clone()).equal(sums(x, index.clone())));
    return testing::calls_of(f.graph(), "rush::index_order");
  };
  const bool is_gpu = get_default_device().is_cuda();
  CHECK(orders(false) == (is_gpu ? 1 : 0));
  CHECK(orders(true) == (is_gpu ? 2 : 0));
}

TEST_CASE("calls by the hundred are several loops") {
  const NoGradGuard no_grad;
  const auto scaled = [](const Tensor& x) {
    std::vector<Tensor> rows;
    for (const Tensor& row : x.unbind(0)) rows.push_back((row * 2 + 1).relu());
    return stack(rows);
  };
  auto f = compile(scaled);
  const Tensor x = randn({300, 8});
  CHECK(f(x).equal(scaled(x)));
  CHECK(testing::fused_calls(f.graph()) == 4);
}
