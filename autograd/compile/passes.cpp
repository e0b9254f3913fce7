// Passes over a graph that need to know nothing of its operators but what they write, and which of them are casts.
#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>

#include "autograd/compile/graph.h"
#include "autograd/compile/passes.h"
#include "autograd/compile/pattern.h"
#include "autograd/compile/uses.h"
#include "core/ops/optim/foreach.h"
#include "core/ops/view/copy.h"

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

namespace compiler {

namespace {

// What casts of one list have in common.
struct CastKind {
  ScalarType from, to;
  Device device;
  bool operator==(const CastKind&) const = default;
};

class CastGatherer {
 public:
  explicit CastGatherer(Graph& graph) : graph_(graph), uses_(graph) {}

  void run() {
    std::vector<Graph::Call> calls = std::move(graph_.calls);
    for (size_t i = 0; i < calls.size(); ++i) {
      const std::optional<CastKind> kind = kind_of(calls[i]);
      if (!kind) {
        flush_for(calls[i]);
        gathered_.push_back({std::move(calls[i])});
      } else if (is_parameter_as_it_was(calls[i].argument(0), i)) {
        place_of(*kind).push_back(std::move(calls[i]));
      } else {
        flush_for(calls[i]);
        waiting_.push_back({*kind, std::move(calls[i])});
      }
    }
    flush([](const Graph::Call&) { return true; });
    for (std::vector<Graph::Call>& each : gathered_) graph_.calls.push_back(as_one(std::move(each)));
  }

 private:
  struct Waiting {
    CastKind kind;
    Graph::Call cast;
  };

  const Graph::TensorInfo& info(Graph::Id id) const { return graph_.info(id); }
  std::optional<CastKind> kind_of(const Graph::Call& call) const {
    if (call.op != &ops::_to_copy) return std::nullopt;
    const Graph::TensorInfo &from = info(call.argument(0)), &to = info(call.result());
    const auto is_real = [](ScalarType t) { return is_floating_point(t) && has_arithmetic(t); };
    const bool fits = is_real(from.dtype) && is_real(to.dtype) && from.dtype != to.dtype && from.device == to.device &&
                      from.sizes == to.sizes && from.strides == to.strides &&
                      is_non_overlapping_and_dense(from.sizes, from.strides);
    return fits ? std::optional(CastKind{from.dtype, to.dtype, to.device}) : std::nullopt;
  }
  bool is_parameter_as_it_was(Graph::Id id, size_t i) const {
    return !uses_.maker(id) && info(id).memory == id && !uses_.is_written_before(id, i);
  }
  // Where the first cast of a parameter of this kind stands.
  std::vector<Graph::Call>& place_of(const CastKind& kind) {
    for (const auto& [known, place] : places_) {
      if (known == kind) return gathered_[place];
    }
    places_.push_back({kind, gathered_.size()});
    return gathered_.emplace_back();
  }
  // The casts that must be done before this call.
  void flush_for(const Graph::Call& call) {
    if (call.host) return flush([](const Graph::Call&) { return true; });
    const auto any_in_memory_of = [&](Graph::Id other, const std::vector<Graph::Id>& ids) {
      return std::ranges::any_of(ids, [&](Graph::Id id) { return info(id).memory == info(other).memory; });
    };
    flush([&](const Graph::Call& cast) {
      return any_in_memory_of(cast.result(), Graph::tensors_of(call.arguments)) ||
             any_in_memory_of(cast.argument(0), call.written);
    });
  }
  template <class IsNeeded>
  void flush(const IsNeeded& is_needed) {
    std::vector<std::pair<CastKind, std::vector<Graph::Call>>> lists;
    std::erase_if(waiting_, [&](Waiting& each) {
      if (!is_needed(each.cast)) return false;
      auto list = std::ranges::find(lists, each.kind, &std::pair<CastKind, std::vector<Graph::Call>>::first);
      if (list == lists.end()) list = lists.insert(list, {each.kind, {}});
      list->second.push_back(std::move(each.cast));
      return true;
    });
    for (auto& [kind, casts] : lists) gathered_.push_back(std::move(casts));
  }
  Graph::Call as_one(std::vector<Graph::Call> calls) const {
    if (calls.size() == 1) return std::move(calls[0]);
    Graph::Argument sources{std::vector<Tensor>(), {}}, results{std::vector<Tensor>(), {}};
    for (const Graph::Call& each : calls) {
      sources.tensors.push_back(each.argument(0));
      results.tensors.push_back(each.result());
    }
    const ScalarType dtype = info(results.tensors[0]).dtype;
    return {.op = &ops::foreach_to_copy,
            .name = std::string(ops::foreach_to_copy.name()),
            .arguments = {std::move(sources), {dtype, {}}},
            .results = {std::move(results)}};
  }

  Graph& graph_;
  const Uses uses_;
  std::vector<std::vector<Graph::Call>> gathered_;  // a call each, or casts that become one
  std::vector<std::pair<CastKind, size_t>> places_;
  std::vector<Waiting> waiting_;
};

}  // namespace

void gather_casts(Graph& graph) { CastGatherer(graph).run(); }

}  // namespace compiler

}  // namespace rush
