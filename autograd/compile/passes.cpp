// Passes over a graph that need to know nothing of its operators but what they write.
#include <algorithm>
#include <numeric>
#include <unordered_map>

#include "autograd/compile/graph.h"
#include "autograd/compile/pattern.h"
#include "autograd/compile/uses.h"

namespace rush {

void share_memory(Graph& graph, Graph::Id id, Graph::Id other) {
  const int32_t from = graph.tensors[static_cast<size_t>(id)].memory,
                to = graph.tensors[static_cast<size_t>(other)].memory;
  for (Graph::TensorInfo& each : graph.tensors) {
    if (each.memory == from) each.memory = to;
  }
}

void remove_dead_calls(Graph& graph) {
  std::vector<bool> is_read(graph.tensors.size(), false);
  const auto read = [&](Graph::Id id) {
    if (id != Graph::kNone) is_read[static_cast<size_t>(id)] = true;
  };
  std::ranges::for_each(graph.outputs, read);
  for (const Graph::Gradient& each : graph.gradients) read(each.gradient);
  std::vector<Graph::Call> kept;
  for (size_t i = graph.calls.size(); i-- > 0;) {
    Graph::Call& call = graph.calls[i];
    bool needed = call.has_effect();
    Graph::for_each_tensor(call.results, [&](Graph::Id id) { needed |= is_read[static_cast<size_t>(id)]; });
    if (!needed) continue;
    Graph::for_each_tensor(call.arguments, read);
    kept.push_back(std::move(call));
  }
  std::ranges::reverse(kept);
  graph.calls = std::move(kept);
}

namespace {

// How many calls, outputs and gradients name each memory. That of inputs and constants the program has, too.
std::vector<int> uses_of_memories(const Graph& graph) {
  std::vector<int> uses(graph.tensors.size(), 0);
  const auto use = [&](Graph::Id id) {
    if (id != Graph::kNone) ++uses[static_cast<size_t>(graph.tensors[static_cast<size_t>(id)].memory)];
  };
  const auto use_outside = [&](Graph::Id id) { use(id), use(id); };
  for (const Graph::Constant& constant : graph.constants) use_outside(constant.id);
  std::ranges::for_each(graph.inputs, use_outside);
  std::ranges::for_each(graph.outputs, use);
  for (const Graph::Gradient& each : graph.gradients) use(each.gradient);
  for (const Graph::Call& call : graph.calls) {
    Graph::for_each_tensor(call.arguments, use);
    Graph::for_each_tensor(call.results, use);
  }
  return uses;
}

// Whether a call copies what another call made, with its strides.
bool is_clone(const Graph& graph, const compiler::Uses& uses, const Graph::Call& call) {
  if (!call.op || call.op->name() != "aten::clone" || !uses.maker(call.arguments[0].tensors[0])) return false;
  const auto& from = graph.tensors[static_cast<size_t>(call.arguments[0].tensors[0])];
  const auto& to = graph.tensors[static_cast<size_t>(call.results[0].tensors[0])];
  return IntArrayRef(from.strides) == IntArrayRef(to.strides) && from.storage_offset == 0;
}

}  // namespace

void remove_clones(Graph& graph) {
  std::vector<Graph::Id> stands_for(graph.tensors.size());
  std::iota(stands_for.begin(), stands_for.end(), 0);
  const auto rename = [&](Graph::Id& id) {
    if (id != Graph::kNone) id = stands_for[static_cast<size_t>(id)];
  };
  const std::vector<int> uses = uses_of_memories(graph);
  const compiler::Uses calls(graph);
  std::vector<Graph::Call> kept;
  for (Graph::Call& call : graph.calls) {
    for (Graph::Argument& argument : call.arguments) std::ranges::for_each(argument.tensors, rename);
    std::ranges::for_each(call.written, rename);
    if (is_clone(graph, calls, call)) {
      const Graph::Id from = call.arguments[0].tensors[0];
      // Made by one call, and read by this one.
      if (uses[static_cast<size_t>(graph.tensors[static_cast<size_t>(from)].memory)] == 2) {
        stands_for[static_cast<size_t>(call.results[0].tensors[0])] = from;
        continue;
      }
    }
    kept.push_back(std::move(call));
  }
  graph.calls = std::move(kept);
  std::ranges::for_each(graph.outputs, rename);
  for (Graph::Gradient& each : graph.gradients) rename(each.gradient);
}

namespace {

bool are_same_arguments(const std::vector<Graph::Argument>& a, const std::vector<Graph::Argument>& b) {
  return std::ranges::equal(a, b, [](const Graph::Argument& x, const Graph::Argument& y) {
    return x.tensors == y.tensors && compiler::is_same(x.value, y.value);
  });
}

// Whether a call gives the same whenever its arguments are the same, and nobody can tell its results from those of
// another such call.
bool can_be_shared(const Graph& graph, const compiler::Uses& uses, const Graph::Call& call) {
  if (call.has_effect() || call.results.empty()) return false;
  bool can = true;
  Graph::for_each_tensor(call.results, [&](Graph::Id id) {
    can &= !uses.is_seen_outside(id) && !uses.is_written(id, 0, graph.calls.size());
  });
  return can;
}

}  // namespace

void remove_common_calls(Graph& graph) {
  const compiler::Uses uses(graph);
  std::vector<Graph::Id> stands_for(graph.tensors.size());
  std::iota(stands_for.begin(), stands_for.end(), 0);
  const auto rename = [&](Graph::Id& id) {
    if (id != Graph::kNone) id = stands_for[static_cast<size_t>(id)];
  };
  std::vector<bool> is_gone(graph.calls.size(), false);
  std::unordered_map<const OpBase*, std::vector<size_t>> earlier;
  for (size_t i = 0; i < graph.calls.size(); ++i) {
    Graph::Call& call = graph.calls[i];
    for (Graph::Argument& argument : call.arguments) std::ranges::for_each(argument.tensors, rename);
    if (!can_be_shared(graph, uses, call)) continue;
    std::vector<size_t>& alike = earlier[call.op];
    const auto found = std::ranges::find_if(alike, [&](size_t e) {
      bool same = are_same_arguments(graph.calls[e].arguments, call.arguments);
      Graph::for_each_tensor(call.arguments, [&](Graph::Id id) { same &= !uses.is_written(id, e, i); });
      return same;
    });
    if (found == alike.end()) {
      alike.push_back(i);
      continue;
    }
    is_gone[i] = true;
    for (size_t r = 0; r < call.results.size(); ++r) {
      for (size_t t = 0; t < call.results[r].tensors.size(); ++t) {
        const Graph::Id gone = call.results[r].tensors[t], kept = graph.calls[*found].results[r].tensors[t];
        if (gone == Graph::kNone) continue;
        stands_for[static_cast<size_t>(gone)] = kept;
        share_memory(graph, gone, kept);
      }
    }
  }
  std::vector<Graph::Call> kept;
  for (size_t i = 0; i < graph.calls.size(); ++i) {
    if (!is_gone[i]) kept.push_back(std::move(graph.calls[i]));
  }
  graph.calls = std::move(kept);
}

}  // namespace rush
