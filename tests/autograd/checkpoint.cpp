#include "autograd/checkpoint.h"

#include <doctest/doctest.h>

#include <cmath>
#include <thread>
#include <vector>

#include "rushlight.h"
#include "tests/autograd/leaf.h"
#include "tests/compute_sanitizer.h"

using namespace rush;
using autograd::checkpoint;
using rush::testing::random_leaf;

namespace {

int64_t allocated() { return allocator(kCPU).stats().allocated; }

}  // namespace

TEST_CASE("checkpointed gradients are those of the function, weights that it captures included") {
  manual_seed(1);
  const Tensor x = random_leaf({4, 3}, kFloat64), other = random_leaf({4, 3}, kFloat64),
               w = random_leaf({3, 3}, kFloat64);
  int runs = 0;
  const auto fn = [&](const Tensors& in) {
    ++runs;
    const Tensor hidden = tanh(in[0].matmul(w)) * in[1];
    return Tensors{softmax(hidden, 1), hidden.exp()};
  };
  const auto gradients = [&](const Tensors& out) { return autograd::grad((out[0] * out[1]).sum(), {x, other, w}); };
  const Tensors expected = gradients(fn({x, other}));
  runs = 0;
  const Tensors out = checkpoint(fn, {x, other});
  CHECK(runs == 1);
  const Tensors actual = gradients(out);
  CHECK(runs == 2);
  for (size_t i = 0; i < expected.size(); ++i) CHECK(actual[i].equal(expected[i]));
}

TEST_CASE("the second run draws the random numbers of the first, and leaves the generator where it was") {
  const Tensor x = ones({64}, TensorOptions(kFloat64)).requires_grad_();
  manual_seed(7);
  const Tensor y = checkpoint([](const Tensor& t) { return dropout(t * t, 0.5, true) * 3.0; }, x);
  const Tensor mask = y.detach() / 3.0;
  rand({5});  // the generator moves on
  const auto before = default_generator().get_state();
  y.sum().backward();
  CHECK(default_generator().get_state() == before);
  CHECK(x.grad().equal(mask * 6.0));
  CHECK(mask.eq(0).any().item<bool>());

  // Without it, another mask is drawn.
  x.mutable_grad().reset();
  autograd::CheckpointOptions forget;
  forget.preserve_rng_state = false;
  const Tensor z = checkpoint([](const Tensor& t) { return dropout(t, 0.5, true) * t; }, x, forget);
  z.sum().backward();
  CHECK_FALSE(x.grad().equal(z.detach() * 2.0));
}

TEST_CASE("it keeps only the inputs, and frees what it recomputed") {
  const Tensor x = ones({1000}, TensorOptions(kFloat64)).requires_grad_();
  const auto deep = [](const Tensor& t) {
    Tensor y = t;
    for (int i = 0; i < 20; ++i) y = y.sin();
    return y;
  };
  if (!x.device().is_cpu()) return;  // the memory is not the CPU's
  const int64_t start = allocated();
  Tensor plain = deep(x);
  CHECK(allocated() - start >= 20 * 8000);
  plain.reset();
  CHECK(allocated() == start);
  Tensor kept = checkpoint(deep, x).sum();
  CHECK(allocated() - start < 2 * 8000);
  kept.backward();
  x.mutable_grad().reset();
  kept.reset();
  CHECK(allocated() == start);
}

TEST_CASE("double backward, retained graphs and checkpoints within checkpoints") {
  manual_seed(3);
  const Tensor x = random_leaf({3}, kFloat64), w = random_leaf({3}, kFloat64);
  const auto inner = [&](const Tensor& t) { return (t * w).exp(); };
  const auto outer = [&](const Tensors& in) {
    const Tensor h = in[0].tanh();
    return Tensors{checkpoint(inner, h) * h};
  };
  const auto fn = [&](const Tensors& in) { return checkpoint(outer, {in[0]}); };
  CHECK(autograd::gradcheck(fn, {x}));
  CHECK(autograd::gradgradcheck(fn, {x}));
  const Tensor y = fn({x})[0].sum();
  y.backward({}, true);
  const Tensor once = x.grad().clone(), w_once = w.grad().clone();
  y.backward();
  CHECK(x.grad().equal(once * 2.0));
  CHECK(w.grad().equal(w_once * 2.0));
  CHECK_THROWS_AS(y.backward(), Error);
}

TEST_CASE("a chain of checkpoints with operators in place, whose input requires no gradient") {
  manual_seed(5);
  const Tensor x = randn({8, 4}, TensorOptions(kFloat64));  // no gradient of its own
  std::vector<Tensor> weights;
  for (int i = 0; i < 5; ++i) weights.push_back(random_leaf({4, 4}, kFloat64));
  const auto run = [&](bool checkpointed) {
    Tensor h = x;
    for (const Tensor& w : weights) {
      const auto layer = [w](const Tensor& t) { return t.matmul(w).mul_(0.5).sin_().add_(t); };
      h = checkpointed ? checkpoint(layer, h) : layer(h);
    }
    return autograd::grad(h.sum(), weights);
  };
  const Tensors expected = run(false), actual = run(true);
  for (size_t i = 0; i < weights.size(); ++i) CHECK(actual[i].equal(expected[i]));
}

TEST_CASE("a long chain of checkpoints is walked and freed without recursion") {
  const Tensor x = tensor({1.0}, kFloat64).requires_grad_();
  const auto layer = [](const Tensor& t) { return t * t; };
  const int length = testing::length_of_long_chain(100000);
  for (const bool backward : {true, false}) {
    Tensor y = x;
    for (int i = 0; i < length; ++i) y = checkpoint(layer, y);
    if (!backward) continue;
    y.backward();
    CHECK(x.grad().item<double>() == std::pow(2.0, length));  // infinity
  }
}

TEST_CASE("threads run their own checkpoints") {
  const Tensor shared = tensor({0.5}, kFloat64).requires_grad_();
  std::vector<double> results(4);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      const auto power = [t](const Tensor& x) { return (x * (t + 1.0)).exp(); };
      for (int i = 0; i < 100; ++i) results[t] = autograd::grad(checkpoint(power, shared), shared)[0].item<double>();
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (int t = 0; t < 4; ++t) CHECK(results[t] == doctest::Approx((t + 1) * std::exp(0.5 * (t + 1))));
}

TEST_CASE("without recording it is a plain call") {
  const NoGradGuard no_grad;
  const Tensor x = ones({2}, requires_grad());
  CHECK_FALSE(checkpoint([](const Tensor& t) { return t * t; }, x).requires_grad());
}

TEST_CASE("what would give wrong gradients is an error") {
  const Tensor x = random_leaf({3}, kFloat64);
  CHECK_THROWS_AS(checkpoint(std::function<Tensor(const Tensor&)>(), x), ValueError);

  int runs = 0;
  const auto backward_of = [&](auto fn) {
    runs = 0;
    checkpoint(fn, x).sum().backward();
  };
  CHECK_THROWS_WITH_AS(backward_of([&](const Tensor& t) { return runs++ == 0 ? t.exp().exp() : t.exp(); }),
                       "checkpoint: the function saved 2 tensors when it ran first, and 1 when it ran again", Error);
  CHECK_THROWS_WITH_AS(backward_of([&](const Tensor& t) { return (runs++ == 0 ? t : t.narrow(0, 0, 2)).exp(); }),
                       "checkpoint: tensor number 0 that the function saved was float64 of sizes (3) when it ran first,"
                       " and is float64 of sizes (2) when it runs again",
                       Error);
  CHECK_THROWS_AS(backward_of([](const Tensor& t) { return t.exp().mul_(2); }), Error);

  const Tensor input = x.detach().clone();
  const Tensor z = checkpoint([&](const Tensor& t) { return t * x; }, input);
  input.add_(1);
  CHECK_THROWS_AS(z.sum().backward(), Error);
}
