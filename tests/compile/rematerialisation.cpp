// Results that a compiled function computes again instead of keeping them: which, and that the numbers stay the same.
#include <doctest/doctest.h>

#include <algorithm>
#include <functional>
#include <string_view>
#include <vector>

#include "autograd/compile/passes.h"
#include "rushlight.h"
#include "tests/compile/graph_calls.h"

using namespace rush;
using namespace rush::nn;
using rush::testing::calls_of;

namespace {

// What a function gives on a and b, and its graph, before and after the pass.
struct Both {
  std::vector<Tensor> expected, got;
  Graph graph;

  bool are_equal() const {
    return std::ranges::equal(expected, got, [](const Tensor& a, const Tensor& b) { return a.equal(b); });
  }
};

template <class F>
Both computed_again(const F& function, double budget = 0) {
  const NoGradGuard no_grad;
  manual_seed(5);
  const std::vector<Tensor> inputs = {randn({64, 32}), randn({32, 32})};
  const auto clones = [&] { return std::vector{inputs[0].clone(), inputs[1].clone()}; };
  Graph graph = make_fx([&](const std::vector<Tensor>& in) { return function(in[0], in[1]); }, clones());
  Both both{GraphModule(graph)(clones()), {}, graph};
  compiler::rematerialise(both.graph, budget);
  both.got = GraphModule(both.graph)(clones());
  return both;
}

// Large tensors between two uses of `early`.
Tensor fill_memory(const Tensor& early, const Tensor& w) {
  return cat({early.matmul(w), early.matmul(w), early.matmul(w)}, 1).sum(1, true);
}

}  // namespace

TEST_CASE(
    "what is cheap to compute is computed again before its late reader, with views of it and what it is made of") {
  const Both simple = computed_again([](const Tensor& x, const Tensor& w) {
    const Tensor y = x.tanh(), z = fill_memory(y, w);
    return std::vector{z + y, x * 2};
  });
  CAPTURE(simple.graph.print());
  CHECK(calls_of(simple.graph, "aten::tanh") == 2);
  CHECK(simple.are_equal());

  const Both chain = computed_again([](const Tensor& x, const Tensor& w) {
    const Tensor y = (x.tanh() + 1).exp(), rows = y.view({2, 32, 32}), z = fill_memory(y, w);
    return std::vector{z + rows.transpose(1, 2).reshape({64, 32}), x * 2};
  });
  CAPTURE(chain.graph.print());
  CHECK(calls_of(chain.graph, "aten::tanh") == 2);
  CHECK(calls_of(chain.graph, "aten::exp") == 2);
  CHECK(chain.are_equal());

  const Both norm = computed_again([](const Tensor& x, const Tensor& w) {
    const Tensor y = layer_norm(x, {32}), z = fill_memory(y, w);
    return std::vector{z + y, x * 2};
  });
  CHECK(calls_of(norm.graph, "aten::native_layer_norm") == 2);
  CHECK(norm.are_equal());
}

TEST_CASE(
    "a tensor is kept where computing it again would take long, draw other numbers, find other ones or hold more") {
  const auto again = [](std::string_view name, const auto& function, double budget = 0) {
    const Both both = computed_again(function, budget);
    CAPTURE(both.graph.print());
    CHECK(both.are_equal());
    return calls_of(both.graph, name);
  };
  CHECK(again("aten::mm", [](const Tensor& x, const Tensor& w) {  // y, and three of fill_memory
          const Tensor y = x.matmul(w), z = fill_memory(y, w);
          return std::vector{z + y, x * 2};
        }) == 4);
  const auto tanh_then = [](const auto& change) {
    return [=](const Tensor& x, const Tensor& w) {
      Tensor y = x.tanh(), z = fill_memory(y, w);
      return change(x, y, z);
    };
  };
  CHECK(again("aten::tanh", tanh_then([](Tensor x, Tensor y, Tensor z) {
                x.add_(1);  // what it was made of
                return std::vector{z + y, x * 2};
              })) == 1);
  CHECK(again("aten::tanh", tanh_then([](Tensor x, Tensor y, Tensor z) {
                y.add_(1);
                return std::vector{z + y, x * 2};
              })) == 1);
  CHECK(again("aten::tanh", tanh_then([](Tensor x, Tensor y, Tensor z) { return std::vector{z + y, y, x * 2}; })) == 1);
  CHECK(again("aten::tanh", tanh_then([](Tensor x, Tensor y, Tensor z) { return std::vector{z + y, x * 2}; }), 1) == 1);
  CHECK(
      again("aten::tanh", [](const Tensor& x, const Tensor& w) {  // its source is no smaller, and would be held for it
        const Tensor y = x.matmul(w).tanh(), z = fill_memory(y, w);
        return std::vector{z + y};
      }) == 1);
}

namespace {

struct BudgetTraining {
  std::vector<Tensor> results;
  int64_t peak = 0;  // bytes of the CPU, beyond what was there before
  size_t saved = 0;  // tensors that the forward pass gives to the backward pass
};

// Several threads' products pack their operands in memory of their own, at moments that differ from run to run.
struct OneThread {
  int threads = get_num_threads();
  OneThread() { set_num_threads(1); }
  ~OneThread() { set_num_threads(threads); }
};

BudgetTraining train_within(double budget, bool has_backward) {
  manual_seed(6);
  Sequential net;
  for (int i = 0; i < 4; ++i) net->extend(*Sequential(Linear(64, 256), GELU(), Linear(256, 64), Tanh()));
  net->to(get_default_device());
  optim::SGD optimizer(net->parameters(), 0.1);
  const auto loss_of = [&](const Tensor& x) { return net->forward(x).square().mean(); };
  const CompileOptions options{.memory_budget = budget};
  auto step = compile(
      [&](const Tensor& x) {
        optimizer.zero_grad();
        const Tensor loss = loss_of(x);
        loss.backward();
        optimizer.step();
        return loss;
      },
      options);
  auto forward = compile(loss_of, options);
  BudgetTraining trained;
  for (int i = 0; i < 5; ++i) {
    const Tensor x = randn({512, 64});
    const int64_t before = cpu::memory_allocated();
    cpu::reset_peak_memory_stats();
    if (has_backward) {
      trained.results.push_back(step(x).detach().clone());
    } else {
      optimizer.zero_grad();
      const Tensor loss = forward(x);
      loss.backward();
      optimizer.step();
      trained.results.push_back(loss.detach().clone());
    }
    trained.peak = cpu::max_memory_allocated() - before;
  }
  if (!has_backward) trained.saved = forward.graph().outputs.size();
  for (const Tensor& parameter : net->parameters()) trained.results.push_back(parameter.detach());
  return trained;
}

}  // namespace

TEST_CASE("a training within a budget takes less memory for the same numbers") {
  for (const bool has_backward : {true, false}) {
    CAPTURE(has_backward);
    const OneThread one;
    const BudgetTraining all = train_within(1, has_backward), some = train_within(0.8, has_backward),
                         least = train_within(0, has_backward);
    for (const BudgetTraining* each : {&some, &least}) {
      REQUIRE(each->results.size() == all.results.size());
      for (size_t i = 0; i < all.results.size(); ++i) CHECK(allclose(each->results[i], all.results[i], 1e-5, 1e-6));
    }
    if (has_backward && get_default_device().is_cpu()) {
      CHECK(least.peak < 0.75 * static_cast<double>(all.peak));
      CHECK(some.peak < 0.9 * static_cast<double>(all.peak));
      CHECK(least.peak <= some.peak);
    }
    if (!has_backward) CHECK(least.saved < all.saved);
  }
}

TEST_CASE("a later loop computes again what it can without reading more") {
  const NoGradGuard no_grad;
  const std::vector<Tensor> inputs = {randn({64, 32}), randn({32, 32})};
  // How often SiLU is computed where `late` reads it, and what it was made of, after a product.
  using Late = std::function<std::vector<Tensor>(const Tensor& product, Tensor gate, const Tensor& gated)>;
  const auto times = [&](const Late& late) {
    const auto function = [&](const std::vector<Tensor>& in) {
      const Tensor gate = in[0].matmul(in[1]), gated = silu(gate);
      return late((gated * in[0]).matmul(in[1]), gate, gated);
    };
    Graph graph = make_fx(function, inputs);
    const std::vector<Tensor> expected = GraphModule(graph)(inputs);
    compiler::compute_beside_readers(graph);
    CAPTURE(graph.print());
    const std::vector<Tensor> got = GraphModule(graph)(inputs);
    for (size_t i = 0; i < expected.size(); ++i) CHECK(got[i].equal(expected[i]));
    return calls_of(graph, "aten::silu");
  };
  const auto gradient = [](const Tensor& product, const Tensor& gate, const Tensor& gated) {
    return std::vector{product * gated, ops::silu_backward(product, gate)};
  };
  CHECK(times(gradient) == 2);
  CHECK(times([](Tensor p, Tensor, Tensor y) { return std::vector{p * y}; }) == 1);  // would hold `gate` for it
  CHECK(times([](Tensor p, Tensor g, Tensor y) { return std::vector{p.matmul(y.t()), g * 2}; }) == 1);  // no loop
  CHECK(times([](Tensor p, Tensor g, Tensor y) { return std::vector{p * y, y, g * 2}; }) == 1);         // is returned
  CHECK(times([](Tensor p, Tensor g, Tensor y) { return std::vector{g.mul_(2), p * y}; }) == 1);
}

TEST_CASE("a budget is a share") {
  const auto with = [](double budget) {
    compile([](const Tensor& x) { return x + 1; }, {.memory_budget = budget})(ones({2}));
  };
  CHECK_NOTHROW(with(0));
  CHECK_THROWS_WITH_AS(with(1.5), doctest::Contains("memory_budget must be from 0 to 1, got 1.5"), ValueError);
  CHECK_THROWS_AS(with(-0.1), ValueError);
}
