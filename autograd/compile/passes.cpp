// Passes over a graph that need to know nothing of its operators but what they write.
#include <algorithm>
#include <numeric>

#include "autograd/compile/graph.h"

namespace rush {

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

bool is_clone(const Graph& graph, const Graph::Call& call) {
  if (!call.op || call.op->name() != "aten::clone") return false;
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
  std::vector<Graph::Call> kept;
  for (Graph::Call& call : graph.calls) {
    for (Graph::Argument& argument : call.arguments) std::ranges::for_each(argument.tensors, rename);
    std::ranges::for_each(call.written, rename);
    if (is_clone(graph, call)) {
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

}  // namespace rush
