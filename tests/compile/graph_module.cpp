// Graphs in a program's own hands: docs/graphs.md has whole programs, and here is what is refused.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "rushlight.h"

using namespace rush;

namespace {

Graph make_graph(const Tensor& x) {
  return make_fx([](const auto& in) { return std::vector{(in[0] * 2).matmul(in[0].t()), in[0].relu()}; }, {x});
}

}  // namespace

TEST_CASE("a graph module runs what was traced, on tensors of the same kind alone") {
  const Tensor x = randn({3, 4});
  GraphModule module(make_graph(x));
  const Tensor other = randn({3, 4}).requires_grad_();
  const std::vector<Tensor> results = module({other});
  CHECK(results[0].equal((other * 2).matmul(other.t())));
  CHECK(results[1].equal(other.relu()));
  CHECK_FALSE(results[0].requires_grad());
  CHECK_THROWS_WITH_AS(module({randn({4, 3})}), doctest::Contains("input 0 is not like %0: float32[3, 4]"), ValueError);
  CHECK_THROWS_AS(module({randn({4, 3}).t()}), ValueError);
  CHECK_THROWS_AS(module({x.to(kFloat64)}), ValueError);
  CHECK_THROWS_AS(module({Tensor()}), ValueError);
  CHECK_THROWS_WITH_AS(module({x, x}), doctest::Contains("got 2 inputs, the graph has 1"), ValueError);
}

TEST_CASE("make_fx refuses what a graph cannot hold") {
  const auto reads = [](const auto& in) { return std::vector{in[0] * in[0].sum().template item<double>()}; };
  CHECK_THROWS_WITH_AS(make_fx(reads, {ones({2})}), doctest::Contains("it reads a number from a tensor at "), Error);
}

TEST_CASE("both stages of a graph together are the graph, wherever it is split") {
  const Tensor x = randn({3, 4});
  const Graph graph = make_graph(x);
  for (size_t at = 0; at <= graph.calls.size(); ++at) {
    CAPTURE(at);
    auto [first, second] = split(graph, at);
    CHECK(first.calls.size() == at);
    const std::vector<Tensor> results = GraphModule(second)(GraphModule(first)({x}));
    CHECK(results[0].equal((x * 2).matmul(x.t())));
    CHECK(results[1].equal(x.relu()));
  }
  CHECK_THROWS_AS(split(graph, graph.calls.size() + 1), IndexError);
  const Tensor w = ones({4}).requires_grad_();
  const Graph with_backward = make_fx([&](const auto& in) { return std::vector{in[0] * w}; }, {x});
  CHECK_THROWS_WITH_AS(split(with_backward, 1), doctest::Contains("has a backward pass"), ValueError);
}

TEST_CASE("an inserted call is asked what it makes, and what is left out takes its default") {
  const Tensor x = randn({3, 4});
  Graph graph = make_graph(x);
  const size_t calls = graph.calls.size();
  const std::vector<Graph::Id> made =
      insert_call(graph, calls, "aten::sum.dim_IntList", {tensor_argument(graph.outputs[1]), {{1}, {}}});
  REQUIRE(made.size() == 1);
  CHECK(graph.describe(made[0]).find("float32[3]") != std::string::npos);
  graph.outputs[1] = made[0];
  CHECK(GraphModule(graph)({x})[1].equal(x.relu().sum(1)));
  CHECK_THROWS_AS(insert_call(graph, calls + 2, "aten::relu", {tensor_argument(0)}), IndexError);
  CHECK_THROWS_WITH_AS(insert_call(graph, 0, "aten::relu", {tensor_argument(999)}),
                       doctest::Contains("the graph has no tensor %999"), IndexError);
  CHECK_THROWS_WITH_AS(insert_call(graph, 0, "aten::nothing", {tensor_argument(0)}),
                       doctest::Contains("there is no operator named 'aten::nothing'"), NotImplementedError);
  CHECK_THROWS_AS(insert_call(graph, 0, "aten::mm", {tensor_argument(0), tensor_argument(0)}), ValueError);
  CHECK(graph.calls.size() == calls + 1);
}

TEST_CASE("multiplications and additions are counted without running anything") {
  const Graph graph = make_graph(randn({3, 4}));
  double sum = 0;
  for (const Graph::Call& call : graph.calls) sum += flops(graph, call);
  CHECK(sum == 3 * 4 + 2 * 3 * 4 * 3);  // a product with a number, and one of matrices
}
