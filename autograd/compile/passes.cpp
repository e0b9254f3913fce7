// Passes over a graph that need to know nothing of its operators but what they write.
#include <algorithm>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>

#include "autograd/compile/graph.h"
#include "autograd/compile/pattern.h"
#include "autograd/compile/uses.h"

namespace rush {

using Ids = std::vector<Graph::Id>;

void share_memory(Graph& graph, Graph::Id id, Graph::Id other) {
  const int32_t from = graph.info(id).memory, to = graph.info(other).memory;
  for (Graph::TensorInfo& each : graph.tensors) {
    if (each.memory == from) each.memory = to;
  }
}

void remove_dead_calls(Graph& graph) {
  const Ids ends = graph.read_at_end();
  std::set<Graph::Id> read(ends.begin(), ends.end());
  std::vector<Graph::Call> kept;
  for (size_t i = graph.calls.size(); i-- > 0;) {
    Graph::Call& call = graph.calls[i];
    const auto is_read = [&](Graph::Id id) { return read.contains(id); };
    if (!call.has_effect() && std::ranges::none_of(Graph::tensors_of(call.results), is_read)) continue;
    for (const Graph::Id id : Graph::tensors_of(call.arguments)) read.insert(id);
    kept.push_back(std::move(call));
  }
  std::ranges::reverse(kept);
  graph.calls = std::move(kept);
}

namespace {

// How many calls, outputs and gradients name each memory. That of inputs and constants the program has, too.
std::unordered_map<int32_t, int> uses_of_memories(const Graph& graph) {
  std::unordered_map<int32_t, int> uses;
  const auto use = [&](const Ids& ids, int times = 1) {
    for (const Graph::Id id : ids) uses[graph.info(id).memory] += times;
  };
  for (const Graph::Constant& constant : graph.constants) use({constant.id}, 2);
  use(graph.inputs, 2);
  use(graph.read_at_end());
  for (const Graph::Call& call : graph.calls) {
    use(Graph::tensors_of(call.arguments));
    use(Graph::tensors_of(call.results));
  }
  return uses;
}

// Whether a call copies what another call made, with its strides.
bool is_clone(const Graph& graph, const compiler::Uses& uses, const Graph::Call& call) {
  if (!call.op || call.op->name() != "aten::clone" || !uses.maker(call.argument(0))) return false;
  const Graph::TensorInfo& from = graph.info(call.argument(0));
  return from.strides == graph.info(call.result()).strides && from.storage_offset == 0;
}

bool are_same_arguments(const std::vector<Graph::Argument>& a, const std::vector<Graph::Argument>& b) {
  return std::ranges::equal(a, b, [](const Graph::Argument& x, const Graph::Argument& y) {
    return x.tensors == y.tensors && compiler::is_same(x.value, y.value);
  });
}

// Whether a call gives the same whenever its arguments are the same, and nobody can tell its results from those of
// another such call.
bool can_be_shared(const Graph& graph, const compiler::Uses& uses, const Graph::Call& call) {
  return !call.has_effect() && !call.results.empty() &&
         std::ranges::none_of(Graph::tensors_of(call.results), [&](Graph::Id id) {
           return uses.is_seen_outside(id) || uses.is_written(id, 0, graph.calls.size());
         });
}

// What stands for the constants that are the same number as an earlier one.
std::map<Graph::Id, Graph::Id> same_numbers(const Graph& graph) {
  std::map<Graph::Id, Graph::Id> stands_for;
  std::map<std::pair<ScalarType, std::string>, Graph::Id> first;
  for (const auto& [id, tensor] : graph.constants) {
    if (!graph.info(id).is_wrapped_number) continue;
    std::string bytes(static_cast<const char*>(tensor.data_ptr()), static_cast<size_t>(tensor.nbytes()));
    const auto [same, is_first] = first.emplace(std::pair(tensor.scalar_type(), std::move(bytes)), id);
    if (!is_first) stands_for.emplace(id, same->second);
  }
  return stands_for;
}

}  // namespace

void remove_clones(Graph& graph) {
  std::map<Graph::Id, Graph::Id> stands_for;
  std::unordered_map<int32_t, int> uses = uses_of_memories(graph);
  const compiler::Uses calls(graph);
  std::vector<Graph::Call> kept;
  for (Graph::Call& call : graph.calls) {
    call.rename(stands_for);
    // Made by one call, and read by this one.
    if (is_clone(graph, calls, call) && uses[graph.info(call.argument(0)).memory] == 2) {
      const Graph::Id from = call.argument(0), clone = call.result();
      stands_for[clone] = from;
      // Who uses the clone uses the original now, apart from the call that is gone.
      uses[graph.info(from).memory] += uses[graph.info(clone).memory] - 2;
      share_memory(graph, clone, from);
    } else {
      kept.push_back(std::move(call));
    }
  }
  graph.calls = std::move(kept);
  graph.rename(stands_for);
}

void remove_common_calls(Graph& graph) {
  const compiler::Uses uses(graph);
  std::map<Graph::Id, Graph::Id> stands_for = same_numbers(graph);
  std::vector<Graph::Call> kept;
  std::unordered_map<const OpBase*, std::vector<size_t>> earlier;
  for (size_t i = 0; i < graph.calls.size(); ++i) {
    Graph::Call& call = graph.calls[i];
    call.rename(stands_for);
    kept.push_back(call);
    if (!can_be_shared(graph, uses, call)) continue;
    std::vector<size_t>& alike = earlier[call.op];
    const auto found = std::ranges::find_if(alike, [&](size_t e) {
      return are_same_arguments(graph.calls[e].arguments, call.arguments) &&
             std::ranges::none_of(Graph::tensors_of(call.arguments),
                                  [&](Graph::Id id) { return uses.is_written(id, e, i); });
    });
    if (found == alike.end()) {
      alike.push_back(i);
      continue;
    }
    kept.pop_back();
    const Ids gone = Graph::tensors_of(call.results), instead = Graph::tensors_of(graph.calls[*found].results);
    for (size_t t = 0; t < gone.size(); ++t) {
      stands_for[gone[t]] = instead[t];
      share_memory(graph, gone[t], instead[t]);
    }
  }
  graph.calls = std::move(kept);
}

}  // namespace rush
