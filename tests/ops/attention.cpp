#include "core/ops/attention.h"

#include <limits>

#include "tests/ops/index_testing.h"

namespace {

using namespace rush;
using namespace rush::testing;

double distance_between(const Tensor& a, const Tensor& b) {
  CHECK(a.sizes() == b.sizes());
  return (a - b).abs().max().item<double>();
}

struct Inputs {
  Tensor q = leaf({2, 3, 4, 5}).detach(), k = leaf({2, 3, 6, 5}, 1).detach(), v = leaf({2, 3, 6, 7}, 2).detach();
};

TEST_CASE("scaled_dot_product_attention: its formula") {
  const Inputs in;
  const Tensor scores = in.q.matmul(in.k.mT()) / std::sqrt(5.0);
  CHECK(distance_between(scaled_dot_product_attention(in.q, in.k, in.v), scores.softmax(-1).matmul(in.v)) < 1e-13);
  CHECK(distance_between(scaled_dot_product_attention(in.q, in.k, in.v, std::nullopt, 0, false, 0.3),
                         (in.q.matmul(in.k.mT()) * 0.3).softmax(-1).matmul(in.v)) < 1e-13);
  const Tensor bias = leaf({4, 6}, 4).detach();
  CHECK(distance_between(scaled_dot_product_attention(in.q, in.k, in.v, bias),
                         (scores + bias).softmax(-1).matmul(in.v)) < 1e-13);
}

TEST_CASE("scaled_dot_product_attention: masks hide keys") {
  const Inputs in;
  // Causal: position i is attention to the first i + 1 keys alone.
  const Tensor causal = scaled_dot_product_attention(in.q, in.k, in.v, std::nullopt, 0, true);
  for (int64_t i = 0; i < 4; ++i) {
    const auto first = [i](const Tensor& t) { return t.narrow(-2, 0, i + 1); };
    const Tensor row = scaled_dot_product_attention(in.q.narrow(-2, i, 1), first(in.k), first(in.v));
    CHECK(distance_between(causal.narrow(-2, i, 1), row) < 1e-13);
  }
  // A bool mask keeps what is true; a row of nothing is zero, and so are its gradients.
  const Tensor mask = zeros({4, 6}, kBool);
  mask.narrow(0, 0, 3).narrow(1, 1, 3).fill_(true);
  const Tensor q = in.q.clone().requires_grad_();
  const Tensor out = scaled_dot_product_attention(q, in.k, in.v, mask);
  const auto kept = [](const Tensor& t) { return t.narrow(-2, 1, 3); };
  CHECK(distance_between(out.narrow(-2, 0, 3),
                         scaled_dot_product_attention(in.q.narrow(-2, 0, 3), kept(in.k), kept(in.v))) < 1e-13);
  CHECK(out.select(-2, 3).abs().max().item<double>() == 0);
  out.sum().backward();
  CHECK(q.grad().select(-2, 3).abs().max().item<double>() == 0);
  CHECK(std::isfinite(q.grad().sum().item<double>()));
}

TEST_CASE("scaled_dot_product_attention: shared heads") {
  const Tensor q = leaf({2, 4, 3, 5}).detach(), k = leaf({2, 2, 6, 5}, 1).detach(), v = leaf({2, 2, 6, 5}, 2).detach();
  const Tensor out = scaled_dot_product_attention(q, k, v, std::nullopt, 0, false, std::nullopt, true);
  for (int64_t h = 0; h < 4; ++h) {
    const Tensor one = scaled_dot_product_attention(q.select(1, h), k.select(1, h / 2), v.select(1, h / 2));
    CHECK(distance_between(out.select(1, h), one) < 1e-13);
  }
}

TEST_CASE("scaled_dot_product_attention: derivatives") {
  const Tensors inputs = {leaf({1, 2, 3, 2}), leaf({1, 2, 4, 2}, 1), leaf({1, 2, 4, 3}, 2)};
  check_gradients([](const Tensors& t) { return Tensors{scaled_dot_product_attention(t[0], t[1], t[2])}; }, inputs);
  check_gradients(
      [](const Tensors& t) { return Tensors{scaled_dot_product_attention(t[0], t[1], t[2], std::nullopt, 0, true)}; },
      inputs);
  check_gradients([](const Tensors& t) { return Tensors{scaled_dot_product_attention(t[0], t[1], t[2], t[3])}; },
                  {inputs[0], inputs[1], inputs[2], leaf({3, 4}, 4)});
  check_gradients([](const Tensors& t) { return Tensors{scaled_dot_product_attention(t[0], t[1], t[2])}; },
                  {leaf({2, 1, 2, 3}), leaf({2, 1, 3, 3}, 1), leaf({2, 1, 3, 2}, 2)});
}

TEST_CASE("scaled_dot_product_attention: bad input") {
  const Tensor t = ones({2, 3, 4});
  CHECK_THROWS_AS(scaled_dot_product_attention(ones({4}), t, t), ValueError);
  CHECK_THROWS_AS(scaled_dot_product_attention(t, ones({2, 3, 5}), t), ValueError);
  CHECK_THROWS_AS(scaled_dot_product_attention(t, t, ones({2, 5, 4})), ValueError);
  CHECK_THROWS_AS(scaled_dot_product_attention(t, t, t.to(kFloat64)), TypeError);
  CHECK_THROWS_AS(scaled_dot_product_attention(t, t, t, ones({3, 3}), 0, true), ValueError);
  CHECK_THROWS_AS(scaled_dot_product_attention(t, t, t, ones({3, 3}, kInt64)), TypeError);
  CHECK_THROWS_AS(scaled_dot_product_attention(t, t, t, std::nullopt, 1.5), ValueError);
  const Tensor q = ones({1, 1, 4, 8});
  CHECK_THROWS_AS(ops::_scaled_dot_product_flash_attention_for_cpu(q, q, q, 0, false, ones({1, 1, 2, 4}), std::nullopt),
                  ValueError);
}

}  // namespace
