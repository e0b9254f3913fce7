// Lab 16: which calls of a graph join one loop, which go before it, and which of its tensors others read. The walk over
// all calls is in fusion_walk.cpp. What has to come is found from pairs of calls that use the same memory.
#include "autograd/compile/fusion.h"

#include <map>
#include <set>

#include "autograd/compile/fusion_group.h"
#include "core/ops/pointwise/binary.h"
#include "core/ops/random/random_factories.h"
#include "tests/labs/graph_scripts.h"

namespace rush::labs {
namespace {

using compiler::fusible_kernels;
using compiler::FusionGroup;

// ---- which calls join a loop

// A call's use of a tensor.
struct Use {
  Graph::Id id;
  int32_t memory;
  bool writes;
};

std::vector<Use> uses_of(const Graph& graph, const Graph::Call& call) {
  std::vector<Use> uses;
  const auto use = [&](Graph::Id id, bool writes) {
    uses.push_back({id, graph.tensors[static_cast<size_t>(id)].memory, writes});
  };
  Graph::for_each_tensor(call.arguments, [&](Graph::Id id) { use(id, false); });
  Graph::for_each_tensor(call.results, [&](Graph::Id id) { use(id, true); });
  for (const Graph::Id id : call.written) use(id, true);
  return uses;
}

enum class MemoryMistake {
  None,
  NothingAsked,
  ReadsNotAsked,
  WritesNotAsked,
  OwnNotAsked,
  ReadNotAsked,
  SameRefused,
  ViewsRefused
};

Lines learners_joins(const GraphScript& script) {
  const Graph graph = graph_of(script);
  FusionGroup group(graph);
  Lines lines;
  for (const Graph::Call& call : graph.calls) {
    if (const auto kernels = fusible_kernels(graph, call)) {
      lines.push_back(str(graph.line(call), group.add(call, *kernels) ? " joins" : " does not join"));
    } else {
      group.add_view(call);
    }
  }
  return lines;
}

// Whether two calls, or one if they are the same, cannot be in a loop for these two uses.
bool conflict(const Use& earlier, const Use& later, bool same_call, MemoryMistake mistake) {
  if (earlier.memory != later.memory || !(earlier.writes || later.writes)) return false;
  if (earlier.id == later.id) return mistake == MemoryMistake::SameRefused && !same_call && earlier.writes;
  switch (mistake) {
    case MemoryMistake::NothingAsked: return false;
    case MemoryMistake::ReadsNotAsked: return same_call || later.writes;
    case MemoryMistake::WritesNotAsked: return !same_call && earlier.writes;
    case MemoryMistake::OwnNotAsked: return !same_call;
    case MemoryMistake::ReadNotAsked: return same_call || earlier.writes;
    default: return true;
  }
}

Lines right_joins(const GraphScript& script, MemoryMistake mistake) {
  const Graph graph = graph_of(script);
  std::vector<Use> of_loop;
  std::map<Graph::Id, Graph::Id> stands_for;
  Lines lines;
  for (const Graph::Call& call : graph.calls) {
    if (call.name == "aten::expand" && mistake != MemoryMistake::ViewsRefused)
      stands_for[call.results[0].tensors[0]] = call.arguments[0].tensors[0];
    if (!fusible_kernels(graph, call)) continue;
    std::vector<Use> own = uses_of(graph, call);
    for (Use& use : own) {
      if (stands_for.contains(use.id)) use.id = stands_for[use.id];
    }
    bool joins = true;
    for (const Use& later : own) {
      for (const Use& earlier : own) joins &= !conflict(earlier, later, true, mistake);
      for (const Use& earlier : of_loop) joins &= !conflict(earlier, later, false, mistake);
    }
    if (joins) of_loop.insert(of_loop.end(), own.begin(), own.end());
    lines.push_back(str(graph.line(call), joins ? " joins" : " does not join"));
  }
  return lines;
}

std::string show(const GraphScript& script) { return script.text; }

Exercise memory_exercise() {
  using V = std::vector<Tensor>;
  return lines_exercise<GraphScript, MemoryMistake>(
      "rush::compiler::FusionGroup::fits_memory",
      {{"a = x * 2; return (a + y).relu()", [](Tensor x, Tensor y) { return V{(x * 2 + y).relu()}; }},
       {"x.mul_(2); return x + y", [](Tensor x, Tensor y) { return V{x.mul_(2) + y}; }},
       {"a = x * 2; a.add_(y); return a - x", [](Tensor x, Tensor y) { return V{(x * 2).add_(y) - x}; }},
       {"a = x * 2; y.mul_(a); return y + a",
        [](Tensor x, Tensor y) {
          const Tensor a = x * 2;
          return V{y.mul_(a) + a};
        }},
       {"x.mul_(2); return x.t() + 1", [](Tensor x, Tensor) { return V{x.mul_(2).t() + 1}; }},
       {"a = x * 2; return a.t() + a",
        [](Tensor x, Tensor) {
          const Tensor a = x * 2;
          return V{a.t() + a};
        }},
       {"a = x.t() + 1; x.mul_(2); return a",
        [](Tensor x, Tensor) {
          const Tensor a = x.t() + 1;
          x.mul_(2);
          return V{a};
        }},
       {"a = y + x[0]; x.mul_(2); return a * y",
        [](Tensor x, Tensor y) {
          const Tensor a = y + x.select(0, 0);
          x.mul_(2);
          return V{a * y};
        }},
       {"x.add_(x.t()); return x * y", [](Tensor x, Tensor y) { return V{x.add_(x.t()) * y}; }},
       {"x.mul_(2); x.t().add_(1); return x",
        [](Tensor x, Tensor) {
          x.mul_(2).t().add_(1);
          return V{x};
        }},
       {"a = x.t() + y.t(); return a * x", [](Tensor x, Tensor y) { return V{(x.t() + y.t()) * x}; }},
       {"a = x * 2; m = a.amax(1, keepdim).expand(16, 16); return a - m",
        [](Tensor x, Tensor) {
          const Tensor a = x * 2;
          return V{a - a.amax({1}, true).expand({16, 16})};
        }}},
      show, learners_joins, right_joins,
      {{"nothing is asked: a loop goes through the elements in any order, so it must not read at one place what it "
        "writes at another",
        MemoryMistake::NothingAsked},
       {"what the loop writes may be read at another place: all tensors that use this memory have to be the same",
        MemoryMistake::ReadsNotAsked},
       {"what is read at another place may be written, by the loop or the call itself", MemoryMistake::WritesNotAsked},
       {"a call may write what it reads itself at another place", MemoryMistake::OwnNotAsked},
       {"a call may write what the loop has read at another place: see read_", MemoryMistake::ReadNotAsked},
       {"what the loop writes is never read again: the same tensor may be, at the same place",
        MemoryMistake::SameRefused},
       {"a view that stands for what the loop makes is taken for another tensor: see made_by_loop",
        MemoryMistake::ViewsRefused}});
}

// ---- which calls go before a loop

enum class OrderMistake { None, ReadsNotAsked, WritesNotAsked, Never, HostMoves, FollowersNotAsked, NumbersAsked };

struct OrderScript {
  GraphScript script;
  bool has_host_call = false;
};

std::string show_order(const OrderScript& each) {
  return each.script.text + (each.has_host_call ? "; then something without operators" : "");
}

Graph graph_of_order(const OrderScript& each) {
  Graph graph = graph_of(each.script);
  if (each.has_host_call) graph.calls.push_back({.host = [] {}, .name = "host"});
  return graph;
}

Lines learners_order(const OrderScript& each) {
  const Graph graph = graph_of_order(each);
  FusionGroup group(graph);
  Lines lines;
  for (const Graph::Call& call : graph.calls) {
    const auto kernels = fusible_kernels(graph, call);
    if (kernels && group.add(call, *kernels)) continue;
    const bool is_independent = group.is_independent_of(call);
    if (!is_independent) group.add_follower(call, false);
    lines.push_back(str(graph.line(call), is_independent ? " can go before the loop" : " cannot go before the loop"));
  }
  return lines;
}

// What calls read and write: numbers of memories, or of tensors.
struct Touched {
  std::set<int32_t> read, written;
};

bool meet(const std::set<int32_t>& a, const std::set<int32_t>& b) {
  return std::ranges::any_of(a, [&](int32_t each) { return b.contains(each); });
}

void touch(const Graph& graph, const Graph::Call& call, OrderMistake mistake, Touched& touched) {
  for (const Use& use : uses_of(graph, call)) {
    (use.writes ? touched.written : touched.read).insert(mistake == OrderMistake::NumbersAsked ? use.id : use.memory);
  }
}

Lines right_order(const OrderScript& each, OrderMistake mistake) {
  const Graph graph = graph_of_order(each);
  Touched loop, followers;
  Lines lines;
  for (const Graph::Call& call : graph.calls) {
    if (fusible_kernels(graph, call)) {
      touch(graph, call, mistake, loop);
      continue;
    }
    Touched own;
    touch(graph, call, mistake, own);
    if (call.written.empty()) own.written.clear();  // what it makes is new, or a view
    const bool follows = meet(own.read, followers.written);
    const bool stays = (meet(own.read, loop.written) && mistake != OrderMistake::ReadsNotAsked) ||
                       ((meet(own.written, loop.read) || meet(own.written, loop.written)) &&
                        mistake != OrderMistake::WritesNotAsked) ||
                       ((follows || meet(own.written, followers.read)) && mistake != OrderMistake::FollowersNotAsked) ||
                       (!call.op && mistake != OrderMistake::HostMoves);
    const bool is_independent = !stays && mistake != OrderMistake::Never;
    lines.push_back(str(graph.line(call), is_independent ? " can go before the loop" : " cannot go before the loop"));
    if (!is_independent && (follows || call.name == "aten::sum.dim_IntList")) touch(graph, call, mistake, followers);
  }
  return lines;
}

Exercise order_exercise() {
  using V = std::vector<Tensor>;
  return lines_exercise<OrderScript, OrderMistake>(
      "rush::compiler::FusionGroup::is_independent_of",
      {{{"a = x * 2; return a, y.mm(y)",
         [](Tensor x, Tensor y) {
           return V{x * 2, y.mm(y)};
         }}},
       {{"a = x * 2; return a, x.mm(y)",
         [](Tensor x, Tensor y) {
           return V{x * 2, x.mm(y)};
         }}},
       {{"a = x * 2; return a.mm(y)", [](Tensor x, Tensor y) { return V{(x * 2).mm(y)}; }}},
       {{"a = x * 2; return a.t().mm(y)", [](Tensor x, Tensor y) { return V{(x * 2).t().mm(y)}; }}},
       {{"x.mul_(2); return x.mm(y)", [](Tensor x, Tensor y) { return V{x.mul_(2).mm(y)}; }}},
       {{"a = x * 2; y.normal_(); return a",
         [](Tensor x, Tensor y) {
           const Tensor a = x * 2;
           y.normal_();
           return V{a};
         }}},
       {{"a = x * 2; x.normal_(); return a",
         [](Tensor x, Tensor) {
           const Tensor a = x * 2;
           x.normal_();
           return V{a};
         }}},
       {{"a = x * 2; x.t().normal_(); return a",
         [](Tensor x, Tensor) {
           const Tensor a = x * 2;
           x.t().normal_();
           return V{a};
         }}},
       {{"a = x * 2; a.normal_(); return a", [](Tensor x, Tensor) { return V{(x * 2).normal_()}; }}},
       {{"a = x * 2; return a, rand_like(x)",
         [](Tensor x, Tensor) {
           return V{x * 2, rand_like(x)};
         }}},
       {{"a = x * 2; s = a.sum(0, keepdim); m = s.mm(y); y.normal_(); return m, x.mm(x)",
         [](Tensor x, Tensor y) {
           const Tensor m = (x * 2).sum({0}, true).mm(y);
           y.normal_();
           return V{m, x.mm(x)};
         }}},
       {{"return x * 2", [](Tensor x, Tensor) { return V{x * 2}; }}, true}},
      show_order, learners_order, right_order,
      {{"what the call reads is not asked for: it may be what the loop writes", OrderMistake::ReadsNotAsked},
       {"what the call writes is not compared with what the loop reads, which must still be there when it runs",
        OrderMistake::WritesNotAsked},
       {"no call goes before the loop: each that stands between ends it", OrderMistake::Never},
       {"what the program does without operators is moved: nobody knows what it reads and writes",
        OrderMistake::HostMoves},
       {"the call overtakes those that wait until the loop has run: see touches_followers",
        OrderMistake::FollowersNotAsked},
       {"tensors are compared, and not their memory: a view is another tensor of the same memory",
        OrderMistake::NumbersAsked}});
}

// ---- which tensors are seen outside of a loop

enum class SeenMistake { None, OutputsForgotten, GradientsForgotten, ReadersForgotten, InsideCounts };

struct SeenScript {
  GraphScript script;
  std::vector<size_t> inside;
  bool has_gradient = false;  // x is a leaf, and its gradient is what call 1 makes
};

std::string show_seen(const SeenScript& each) {
  std::string places;
  for (const size_t i : each.inside) places += str(places.empty() ? "" : ", ", i);
  return str(each.script.text, "; inside are the calls ", places,
             each.has_gradient ? "; what call 1 makes becomes a gradient" : "");
}

Graph graph_of_seen(const SeenScript& each) {
  Graph graph = graph_of(each.script);
  if (each.has_gradient) graph.gradients.push_back({graph.inputs[0], graph.calls[1].results[0].tensors[0]});
  return graph;
}

// Of the tensors that the calls inside make.
Lines lines_of(const Graph& graph, const SeenScript& each, const std::function<bool(Graph::Id)>& is_seen) {
  Lines lines;
  for (const size_t i : each.inside) {
    Graph::for_each_tensor(graph.calls[i].results, [&](Graph::Id id) {
      lines.push_back(str(graph.line(graph.calls[i]), is_seen(id) ? " is seen outside" : " is not seen outside"));
    });
  }
  return lines;
}

Lines learners_seen(const SeenScript& each) {
  const Graph graph = graph_of_seen(each);
  const std::vector<bool> seen = compiler::seen_outside(graph, each.inside);
  if (seen.size() != graph.tensors.size())
    return {str("an answer for ", seen.size(), " tensors of ", graph.tensors.size())};
  return lines_of(graph, each, [&](Graph::Id id) { return seen[static_cast<size_t>(id)]; });
}

Lines right_seen(const SeenScript& each, SeenMistake mistake) {
  const Graph graph = graph_of_seen(each);
  return lines_of(graph, each, [&](Graph::Id id) {
    bool is_seen = mistake != SeenMistake::OutputsForgotten && std::ranges::count(graph.outputs, id) > 0;
    for (const Graph::Gradient& gradient : graph.gradients)
      is_seen |= mistake != SeenMistake::GradientsForgotten && gradient.gradient == id;
    for (size_t i = 0; i < graph.calls.size(); ++i) {
      const bool is_inside = std::ranges::count(each.inside, i) > 0;
      if (is_inside ? mistake != SeenMistake::InsideCounts : mistake == SeenMistake::ReadersForgotten) continue;
      Graph::for_each_tensor(graph.calls[i].arguments, [&](Graph::Id read) { is_seen |= read == id; });
    }
    return is_seen;
  });
}

Exercise seen_exercise() {
  using V = std::vector<Tensor>;
  const GraphScript chain{"a = x * 2; b = a + y; return b.relu()",
                          [](Tensor x, Tensor y) { return V{(x * 2 + y).relu()}; }};
  const GraphScript several{"a = x * 2; b = a + y; m = a.mm(y); return b.relu(), m", [](Tensor x, Tensor y) {
                              const Tensor a = x * 2, b = a + y, m = a.mm(y);
                              return V{b.relu(), m};
                            }};
  const GraphScript returned{"a = x * 2; b = a + y; return b.relu(), a, nothing", [](Tensor x, Tensor y) {
                               const Tensor a = x * 2, b = a + y;
                               return V{b.relu(), a, Tensor()};
                             }};
  return lines_exercise<SeenScript, SeenMistake>(
      "rush::compiler::seen_outside",
      {{chain, {0, 1, 2}}, {chain, {0, 1}}, {several, {0, 1, 3}}, {returned, {0, 1, 2}}, {chain, {0, 1, 2}, true}},
      show_seen, learners_seen, right_seen,
      {{"outputs are forgotten: what the graph returns has to be made", SeenMistake::OutputsForgotten},
       {"gradients are forgotten: graph.gradients has what becomes one", SeenMistake::GradientsForgotten},
       {"other calls are forgotten: what one of them reads has to be made", SeenMistake::ReadersForgotten},
       {"calls inside count, too: what only they read is not to be made at all", SeenMistake::InsideCounts}});
}

}  // namespace

std::vector<Exercise> fusion_exercises() {
  std::vector<Exercise> all = {memory_exercise(), order_exercise(), seen_exercise()};
  for (Exercise& each : fusion_walk_exercises()) all.push_back(std::move(each));
  return all;
}

}  // namespace rush::labs
