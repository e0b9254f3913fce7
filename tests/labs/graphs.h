// Graphs of a few nodes that multiply by numbers, for lab 5. What has to arrive at a node is summed over all paths that
// lead to it from the roots.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "autograd/node.h"
#include "core/error/error.h"
#include "core/ops/factory/factories.h"
#include "core/str.h"

namespace rush::labs {

using Values = std::vector<double>;

inline Values values_of(const Tensor& t) {
  const Tensor numbers = t.detach().contiguous();
  return Values(numbers.data_ptr<double>(), numbers.data_ptr<double>() + numbers.numel());
}
inline Tensor tensor_of(const Values& values) { return tensor(ArrayRef<double>(values), kFloat64); }

// A gradient that flows into output number `slot` of a node, multiplied by `factor`; a factor of 0 gives none.
struct Arrow {
  int to;  // -1: the gradient is not needed
  double factor;
  uint32_t slot = 0;
};
struct Function {
  const char* name;
  std::vector<Arrow> edges;
  size_t outputs = 1;
};
// Functions stand in the order of the forward pass.
struct Graph {
  const char* text;
  std::vector<Function> functions;
  std::vector<Arrow> roots;
  std::vector<Arrow> inputs = {};
};

using Grads = std::vector<std::optional<double>>;  // of a node's outputs
struct Run {
  int function;
  Grads grads;
  friend bool operator==(const Run&, const Run&) = default;
};
using Runs = std::vector<Run>;

inline std::string show(const Grads& grads) {
  std::string text;
  for (const auto& grad : grads) text += str(text.empty() ? "" : ", ", grad ? str(*grad) : "undefined");
  return str("(", text, ")");
}
inline std::string show(const Graph& graph, const Run& run) {
  return graph.functions[run.function].name + show(run.grads);
}
inline std::string show(const Graph& graph, const Runs& runs) {
  std::string text;
  for (const Run& run : runs) text += (text.empty() ? "" : " ") + show(graph, run);
  return text.empty() ? "nothing" : text;
}

inline Grads grads_of(const Tensors& tensors) {
  Grads grads;
  for (const Tensor& t : tensors) grads.push_back(t.defined() ? std::optional(values_of(t)[0]) : std::nullopt);
  return grads;
}

// Writes its runs down, up to a number that no right pass comes to.
struct Multiply final : Node {
  static constexpr size_t kMostRuns = 500;
  const int number;
  const std::vector<Arrow> arrows;
  Runs& runs;

  Multiply(int number, const Function& function, Runs& runs) : number(number), arrows(function.edges), runs(runs) {
    for (size_t i = 0; i < function.outputs; ++i) add_output(tensor_of({0}));
  }
  Tensors apply(const Tensors& grads) override {
    RUSH_CHECK(runs.size() < kMostRuns, "nodes ran ", kMostRuns, " times, and the pass goes on");
    runs.push_back({number, grads_of(grads)});
    double sum = 0;
    for (const auto& grad : runs.back().grads) sum += grad.value_or(0);
    Tensors results;
    for (const Arrow& arrow : arrows) results.push_back(arrow.factor == 0 ? Tensor() : tensor_of({sum * arrow.factor}));
    return results;
  }
};

// The nodes of a graph, made as a forward pass would make them.
inline std::vector<intrusive_ptr<Node>> nodes_of(const Graph& graph, Runs& runs) {
  std::vector<intrusive_ptr<Node>> nodes;
  for (const Function& function : graph.functions) {
    auto node = make_intrusive<Multiply>(static_cast<int>(nodes.size()), function, runs);
    for (const Arrow& arrow : function.edges) {
      node->add_next_edge(arrow.to < 0 ? Edge() : Edge{nodes[arrow.to], arrow.slot});
    }
    nodes.push_back(std::move(node));
  }
  return nodes;
}

inline std::vector<Edge> edges_of(const std::vector<Arrow>& arrows, const std::vector<intrusive_ptr<Node>>& nodes) {
  std::vector<Edge> edges;
  for (const Arrow& arrow : arrows) edges.push_back({nodes[arrow.to], arrow.slot});
  return edges;
}

// Whether each function leads to an input; all do where none is asked for.
inline std::vector<bool> leading(const Graph& graph) {
  std::vector<bool> leads(graph.functions.size(), graph.inputs.empty());
  for (const Arrow& input : graph.inputs) leads[input.to] = true;
  for (size_t i = 0; i < leads.size(); ++i) {
    for (const Arrow& arrow : graph.functions[i].edges) {
      if (arrow.to >= 0 && leads[arrow.to]) leads[i] = true;
    }
  }
  return leads;
}

// What arrives at each function over all paths from the roots, and how many paths there are.
struct Arrivals {
  std::vector<Grads> grads;
  std::vector<int> paths;

  explicit Arrivals(const Graph& graph) : paths(graph.functions.size(), 0) {
    for (const Function& function : graph.functions) grads.emplace_back(function.outputs);
    for (const Arrow& root : graph.roots) follow(graph, root, 1);
  }
  void follow(const Graph& graph, const Arrow& arrow, double grad) {
    if (arrow.to < 0 || arrow.factor == 0) return;
    auto& total = grads[arrow.to][arrow.slot];
    total = total.value_or(0) + grad * arrow.factor;
    ++paths[arrow.to];
    for (const Arrow& next : graph.functions[arrow.to].edges) follow(graph, next, grad * arrow.factor);
  }
};

// Small graphs. An edge for each use of a result, in the order of the arguments.
inline const Graph kChain{"b = 2a, c = 3b, from c", {{"a", {}}, {"b", {{0, 2}}}, {"c", {{1, 3}}}}, {{2, 1}}};
inline const Graph kDoubled{
    "b = a + a, c = b + b, from c", {{"a", {}}, {"b", {{0, 1}, {0, 1}}}, {"c", {{1, 1}, {1, 1}}}}, {{2, 1}}};
inline const Graph kSkip{"b = 2a, c = 3b, d = a + c, from d",
                         {{"x", {}}, {"a", {{0, 1}}}, {"b", {{1, 2}}}, {"c", {{2, 3}}}, {"d", {{1, 1}, {3, 1}}}},
                         {{4, 1}}};
inline const Graph kBranches{
    "b = 2a, d = 3c, e = 5b, f = 7d, g = e + f, from g",
    {{"a", {}}, {"c", {}}, {"b", {{0, 2}}}, {"d", {{1, 3}}}, {"e", {{2, 5}}}, {"f", {{3, 7}}}, {"g", {{4, 1}, {5, 1}}}},
    {{6, 1}}};
inline const Graph kOutputs{
    "u, v = split(a), b = 2v, c = 3v, d = b + c, from d",
    {{"a", {}}, {"split", {{0, 1}}, 2}, {"b", {{1, 2, 1}}}, {"c", {{1, 3, 1}}}, {"d", {{2, 1}, {3, 1}}}},
    {{4, 1}}};
inline const Graph kRoots{"b = 2a, c = 3b, from c with 1, from b with 10, and from c with 100",
                          {{"a", {}}, {"b", {{0, 2}}}, {"c", {{1, 3}}}},
                          {{2, 1}, {1, 10}, {2, 100}}};
inline const Graph kMissing{"b = 2a, c = b n with a number n, d = c + no_gradient(b), from d",
                            {{"a", {}}, {"b", {{0, 2}}}, {"c", {{1, 3}, {-1, 5}}}, {"d", {{2, 1}, {1, 0}}}},
                            {{3, 1}}};

inline Graph asking(const Graph& graph, const char* text, std::vector<Arrow> inputs) {
  Graph result = graph;
  result.text = text;
  result.inputs = std::move(inputs);
  return result;
}
inline const Graph kForA =
    asking(kBranches, "b = 2a, d = 3c, e = 5b, f = 7d, g = e + f, from g, the gradient of a", {{0, 1}});
inline const Graph kForAandD =
    asking(kBranches, "b = 2a, d = 3c, e = 5b, f = 7d, g = e + f, from g, the gradients of d and a", {{3, 1}, {0, 1}});
inline const Graph kForSkipped = asking(kSkip, "a = x, b = 2a, c = 3b, d = a + c, from d, the gradient of b", {{2, 1}});

// Adds of a tensor to itself, so many that the paths cannot be counted.
inline Graph long_doubling() {
  Graph graph{"x1 = x0 + x0, x2 = x1 + x1, ... x60, from x60, the gradient of x0", {}, {{60, 1}}, {{0, 1}}};
  for (int i = 0; i <= 60; ++i) {
    graph.functions.push_back({"x", i == 0 ? std::vector<Arrow>() : std::vector<Arrow>{{i - 1, 1}, {i - 1, 1}}});
  }
  return graph;
}

}  // namespace rush::labs
