// Lab 16: the walk over all calls of a graph. The calls that come out are written down here; their results have to be
// those of the function, bit for bit, and in less time.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <iterator>
#include <numeric>
#include <set>

#include "autograd/compile/fusion.h"
#include "autograd/compile/fusion_group.h"
#include "core/ops/nn/dropout.h"
#include "core/ops/pointwise/binary.h"
#include "core/ops/random/random_factories.h"
#include "tests/labs/graph_scripts.h"

namespace rush::labs {
namespace {

using compiler::fusible_kernels;
using compiler::FusionGroup;

constexpr const char* kFunction = "rush::compiler::fuse_element_wise_calls";

struct WalkScript {
  GraphScript script;
  Lines right;  // the names of the calls
  size_t fewest_kernels = 2;
};

std::string show(const WalkScript& each) {
  return str(each.script.text, "; loops have at least ", each.fewest_kernels, " kernels");
}

// ---- what a graph gives

std::string first_difference(const Tensor& got, const Tensor& right) {
  const Tensor a = got.contiguous().view({-1}), b = right.contiguous().view({-1});
  int64_t i = 0;
  while (a[i].equal(b[i])) ++i;
  return str("element ", i, " is ", a[i].item<double>(), " and has to be ", b[i].item<double>());
}

// What came of a call with new inputs: the results, and the inputs, which may have been written.
template <class Function>
std::vector<Tensor> results_of(Function&& function) {
  manual_seed(16);
  std::vector<Tensor> inputs = script_inputs();
  std::vector<Tensor> all = function(inputs);
  all.insert(all.end(), inputs.begin(), inputs.end());
  return all;
}

// The first tensor that a call or the graph's caller is given before it is made; empty if there is none.
std::string unmade(const Graph& graph) {
  std::set<Graph::Id> made(graph.inputs.begin(), graph.inputs.end());
  for (const Graph::Constant& constant : graph.constants) made.insert(constant.id);
  std::string first;
  const auto ask = [&](Graph::Id id, const std::string& reader) {
    if (first.empty() && id != Graph::kNone && !made.contains(id)) first = str("%", id, " is not made before ", reader);
  };
  for (const Graph::Call& call : graph.calls) {
    Graph::for_each_tensor(call.arguments, [&](Graph::Id id) { ask(id, call.name); });
    Graph::for_each_tensor(call.results, [&](Graph::Id id) { made.insert(id); });
  }
  for (const Graph::Id id : graph.outputs) ask(id, "the graph's end");
  return first;
}

std::string judged(const Graph& graph, const WalkScript& each) {
  const std::string missing = unmade(graph);
  if (!missing.empty()) return missing;
  const NoGradGuard no_grad;
  const auto right = results_of([&](std::vector<Tensor>& in) { return each.script.function(in[0], in[1]); });
  const auto got = results_of([&](std::vector<Tensor>& in) { return GraphModule(graph)(in); });
  for (size_t i = 0; i < right.size(); ++i) {
    const size_t outputs = right.size() - 2;
    if (got[i].equal(right[i])) continue;
    return str(i < outputs ? str("result ", i) : str("what is then in ", i == outputs ? "x" : "y"), ": ",
               first_difference(got[i], right[i]));
  }
  return "the function's results, bit for bit";
}

Lines lines_of(const Graph& graph, const WalkScript& each) {
  Lines lines;
  for (const Graph::Call& call : graph.calls) {
    std::string name = call.name;
    for (size_t at; (at = name.find("aten::")) != std::string::npos;) name.erase(at, 6);
    lines.push_back(name);
  }
  lines.push_back(judged(graph, each));
  return lines;
}

Lines learners_walk(const WalkScript& each) {
  Graph graph = graph_of(each.script);
  compiler::fuse_element_wise_calls(graph, each.fewest_kernels);
  return lines_of(graph, each);
}

// ---- walks with a mistake

enum class WalkMistake {
  None,
  NothingDone,
  LastLost,
  EndLost,
  EndNotAsked,
  EndOvertakes,
  NothingBefore,
  ViewsEnd,
  FollowersLost,
  FollowersEnd,
  FollowersNotAsked,
  FewestIgnored,
  OneMore,
  SmallLost,
};

// What becomes of the calls that are left: those that join the group, those that wait until it has run, and how many
// were looked at. The others are put into `calls`.
size_t fill(const Graph& graph, const std::vector<size_t>& left, WalkMistake mistake, FusionGroup& group,
            std::vector<Graph::Call>& calls, std::vector<size_t>& inside, std::vector<size_t>& after) {
  for (size_t at = 0; at < left.size(); ++at) {
    const Graph::Call& call = graph.calls[left[at]];
    const auto kernels = fusible_kernels(graph, call);
    const bool is_open = group.kernels() > 0;
    if (kernels ? group.add(call, *kernels) : is_open && mistake != WalkMistake::ViewsEnd && group.add_view(call)) {
      inside.push_back(left[at]);
    } else if (!is_open || (!kernels && mistake != WalkMistake::NothingBefore && group.is_independent_of(call))) {
      calls.push_back(call);
    } else if (mistake != WalkMistake::FollowersEnd && group.add_follower(call, kernels.has_value())) {
      after.push_back(left[at]);
    } else {
      return at;
    }
  }
  return left.size();
}

bool is_loop(const FusionGroup& group, size_t fewest, WalkMistake mistake) {
  if (mistake == WalkMistake::FewestIgnored) return group.kernels() > 0;
  return group.kernels() > 0 && group.kernels() >= fewest + (mistake == WalkMistake::OneMore ? 1 : 0);
}

Graph walked(const WalkScript& each, WalkMistake mistake) {
  Graph graph = graph_of(each.script);
  if (mistake == WalkMistake::NothingDone) return graph;
  std::vector<Graph::Call> calls;
  std::vector<size_t> left(graph.calls.size());
  std::iota(left.begin(), left.end(), size_t{0});
  const auto put = [&](size_t i) { calls.push_back(graph.calls[i]); };
  while (!left.empty()) {
    FusionGroup group(graph);
    std::vector<size_t> inside, after;
    size_t end = fill(graph, left, mistake, group, calls, inside, after);
    if (end == left.size() && mistake == WalkMistake::LastLost) break;
    if (is_loop(group, each.fewest_kernels, mistake)) {
      std::ranges::copy(group.calls(compiler::seen_outside(graph, inside)), std::back_inserter(calls));
    } else if (mistake != WalkMistake::SmallLost) {
      std::ranges::for_each(inside, put);
    }
    if (end < left.size() && mistake == WalkMistake::EndNotAsked) put(left[end]);
    if (end < left.size() && (mistake == WalkMistake::EndNotAsked || mistake == WalkMistake::EndLost)) ++end;
    if (mistake == WalkMistake::FollowersNotAsked) std::ranges::for_each(after, put);
    if (mistake == WalkMistake::FollowersNotAsked || mistake == WalkMistake::FollowersLost) after.clear();
    left.erase(left.begin(), left.begin() + static_cast<std::ptrdiff_t>(end));
    const bool overtakes = mistake == WalkMistake::EndOvertakes && !left.empty();
    left.insert(left.begin() + (overtakes ? 1 : 0), after.begin(), after.end());
  }
  graph.calls = std::move(calls);
  return graph;
}

Lines right_walk(const WalkScript& each, WalkMistake mistake) {
  if (mistake != WalkMistake::None) return lines_of(walked(each, mistake), each);
  Lines right = each.right;
  right.emplace_back("the function's results, bit for bit");
  return right;
}

std::vector<WalkScript> walk_scripts() {
  using V = std::vector<Tensor>;
  const GraphScript chain{"return (x * 2 + y).relu().tanh()",
                          [](Tensor x, Tensor y) { return V{(x * 2 + y).relu().tanh()}; }};
  const GraphScript pair{"return x * 2 + y", [](Tensor x, Tensor y) { return V{x * 2 + y}; }};
  const std::string before = "a = x * 2; m = y.mm(y); return (a + m).relu()";
  return {
      {chain, {"fused(mul.Tensor, add.Tensor, relu, tanh)"}},
      {{"return x", [](Tensor x, Tensor) { return V{x}; }}, {}},
      {{"return y.mm(y).mm(x)", [](Tensor x, Tensor y) { return V{y.mm(y).mm(x)}; }}, {"mm", "mm"}},
      {{"return ((x * 2 + y).mm(y) + 1).relu()", [](Tensor x, Tensor y) { return V{((x * 2 + y).mm(y) + 1).relu()}; }},
       {"fused(mul.Tensor, add.Tensor)", "mm", "fused(add.Tensor, relu)"}},
      {{before,
        [](Tensor x, Tensor y) {
          const Tensor a = x * 2, m = y.mm(y);
          return V{(a + m).relu()};
        }},
       {"mm", "fused(mul.Tensor, add.Tensor, relu)"}},
      {{"a = x * 2; b = a + y; m = a.mm(b); return b * a, m, a",
        [](Tensor x, Tensor y) {
          const Tensor a = x * 2, b = a + y, m = a.mm(b);
          return V{b * a, m, a};
        }},
       {"fused(mul.Tensor, add.Tensor)", "mm", "mul.Tensor"}},
      {pair, {"mul.Tensor", "add.Tensor"}, 3},
      {chain, {"fused(mul.Tensor, add.Tensor, relu, tanh)"}, 4},
      {{"return x * 2", [](Tensor x, Tensor) { return V{x * 2}; }}, {"fused(mul.Tensor)"}, 1},
      {{"a = (x + 1).relu(); r = (y[0] * 2).relu(); return a, r",
        [](Tensor x, Tensor y) {
          const Tensor a = (x + 1).relu(), r = (y.select(0, 0) * 2).relu();
          return V{a, r};
        }},
       {"select.int", "fused(add.Tensor, relu)", "fused(mul.Tensor, relu)"}},
      {{"a = (x * 2).relu(); return a * a.amax(0) + 1",
        [](Tensor x, Tensor) {
          const Tensor a = (x * 2).relu();
          return V{a * a.amax({0}) + 1};
        }},
       {"fused(mul.Tensor, relu)", "amax", "fused(mul.Tensor, add.Tensor)"}},
      {{"a = (x * 2).relu(); return a * a.sum() + 1",
        [](Tensor x, Tensor) {
          const Tensor a = (x * 2).relu();
          return V{a * a.sum() + 1};
        }},
       {"fused(mul.Tensor, relu, sum, mul.Tensor, add.Tensor)"}},
      {{"e = (x * 2).tanh(); return e / e.sum(1, keepdim)",
        [](Tensor x, Tensor) {
          const Tensor e = (x * 2).tanh();
          return V{e / e.sum({1}, true)};
        }},
       {"fused(mul.Tensor, tanh, sum.dim_IntList, div.Tensor)"}},
      {{"a = x * 2; s = a.sum(1, keepdim).expand(16, 16); return a - s",
        [](Tensor x, Tensor) {
          const Tensor a = x * 2;
          return V{a - a.sum({1}, true).expand({16, 16})};
        }},
       {"fused(mul.Tensor, sum.dim_IntList, sub.Tensor)"}},
      {{"a = (x * 2).relu(); s = a.sum(0); t = s * 2 + 1; return a + y, t",
        [](Tensor x, Tensor y) {
          const Tensor a = (x * 2).relu(), t = a.sum(0) * 2 + 1;
          return V{a + y, t};
        }},
       {"fused(mul.Tensor, relu, add.Tensor)", "sum.dim_IntList", "fused(mul.Tensor, add.Tensor)"}},
      {{"t = x.t(); x.mul_(2); return (t + 1).relu()",
        [](Tensor x, Tensor) {
          const Tensor t = x.t();
          x.mul_(2);
          return V{(t + 1).relu()};
        }},
       {"transpose.int", "mul_.Tensor", "fused(add.Tensor, relu)"}},
      {{"a = (x * 2).relu(); s = a.sum(0); a.add_(1); return a, s",
        [](Tensor x, Tensor) {
          const Tensor a = (x * 2).relu(), s = a.sum(0);
          return V{a.add_(1), s};
        }},
       {"fused(mul.Tensor, relu)", "sum.dim_IntList", "add_.Tensor"}},
      {{"a = x * 2; r = rand_like(x); b = a + r; return b - rand_like(x)",
        [](Tensor x, Tensor) {
          const Tensor a = x * 2, r = rand_like(x), b = a + r;
          return V{b - rand_like(x)};
        }},
       {"rand_like", "rand_like", "fused(mul.Tensor, add.Tensor, sub.Tensor)"}},
      {{"a = x * 2 + 1; d = dropout(a, 0.5); return d * 2 + a",
        [](Tensor x, Tensor) {
          const Tensor a = x * 2 + 1;
          return V{dropout(a, 0.5, true) * 2 + a};
        }},
       {"fused(mul.Tensor, add.Tensor)", "native_dropout", "fused(mul.Tensor, add.Tensor)"}},
      {{"x.mul_(2); return (x.t() + 1).relu()", [](Tensor x, Tensor) { return V{(x.mul_(2).t() + 1).relu()}; }},
       {"mul_.Tensor", "transpose.int", "fused(add.Tensor, relu)"}},
      {{"a = x.mul_(2) + y; return a, (x.t() + 1).relu()",
        [](Tensor x, Tensor y) {
          const Tensor a = x.mul_(2) + y;
          return V{a, (x.t() + 1).relu()};
        }},
       {"fused(mul_.Tensor, add.Tensor)", "transpose.int", "fused(add.Tensor, relu)"}},
      {{"a = x * 2 + 1; x.normal_(); return (a * x).relu()",
        [](Tensor x, Tensor) {
          const Tensor a = x * 2 + 1;
          x.normal_();
          return V{(a * x).relu()};
        }},
       {"fused(mul.Tensor, add.Tensor)", "normal_", "fused(mul.Tensor, relu)"}},
  };
}

// ---- the speed

Tensor twenty_operators(Tensor x) {
  for (int i = 0; i < 5; ++i) x = (x * 1.5 + 0.25).relu() - 0.5;
  return x;
}

template <class Function>
double milliseconds(Function&& function) {
  const auto begin = std::chrono::steady_clock::now();
  function();
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
}

// Their times are shown, and not judged: what else the machine does may slow either. The best of some rounds each, in
// turns.
std::string fault_of_chain() {
  constexpr int kRounds = 10;
  const NoGradGuard no_grad;
  const Tensor x = linspace(-1, 1, 1 << 23);
  Graph graph = make_fx([](const std::vector<Tensor>& in) { return std::vector{twenty_operators(in[0])}; }, {x});
  compiler::fuse_element_wise_calls(graph, 2);
  if (graph.calls.size() != 1) return str("20 operators are ", graph.calls.size(), " calls and have to be one");
  GraphModule fused(std::move(graph));
  if (!fused({x})[0].equal(twenty_operators(x))) return "20 operators in one loop give other numbers than one by one";
  double one_by_one = 1e9, in_one_loop = 1e9;
  for (int i = 0; i < kRounds; ++i) {
    one_by_one = std::min(one_by_one, milliseconds([&] { twenty_operators(x); }));
    in_one_loop = std::min(in_one_loop, milliseconds([&] { fused({x}); }));
  }
  std::printf("         20 operators on 8388608 elements: %.2f ms one by one, %.2f ms in one loop\n", one_by_one,
              in_one_loop);
  return {};
}

}  // namespace

std::vector<Exercise> fusion_walk_exercises() {
  Exercise walk = lines_exercise<WalkScript, WalkMistake>(
      kFunction, walk_scripts(), show, learners_walk, right_walk,
      {{"the graph is as it was: its calls have to be replaced by those that were gathered", WalkMistake::NothingDone},
       {"the last group is lost: what is open when the calls end has to be closed, too", WalkMistake::LastLost},
       {"the call that ends a group is lost", WalkMistake::EndLost},
       {"the call that ends a group overtakes those that wait: put it back before the group is closed",
        WalkMistake::EndOvertakes},
       {"the call that ends a group is not asked again: it may begin the next one", WalkMistake::EndNotAsked},
       {"no call goes before a loop: each that stands between ends the group", WalkMistake::NothingBefore},
       {"views end a group: those that stand for what the loop makes join it, see add_view", WalkMistake::ViewsEnd},
       {"the calls that wait until the loop has run are lost", WalkMistake::FollowersLost},
       {"sums over other dimensions end a group: they can wait until it has run, see add_follower",
        WalkMistake::FollowersEnd},
       {"the calls that wait are not asked again: they may make loops of their own", WalkMistake::FollowersNotAsked},
       {"every group becomes a loop, however few kernels it has", WalkMistake::FewestIgnored},
       {"a group of exactly fewest_kernels does not become a loop", WalkMistake::OneMore},
       {"the calls of a group that becomes no loop are lost", WalkMistake::SmallLost}});
  walk.calls.push_back({"20 operators on 8388608 elements, one by one and in one loop", fault_of_chain});
  return {std::move(walk)};
}

}  // namespace rush::labs
