// Uses: which calls of a graph make, read and write its tensors.
#pragma once
#include <map>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "autograd/compile/graph.h"

namespace rush::compiler {

/// Where the tensors of a graph are used, by the places of calls in it. It must be made again when calls have changed.
class Uses {
 public:
  explicit Uses(const Graph& graph);

  /// The call whose result this is; none of an input or a constant.
  std::optional<size_t> maker(Graph::Id id) const;
  /// The calls that have it as an argument, in their order.
  const std::vector<size_t>& readers(Graph::Id id) const { return calls_of(readers_, id); }
  /// Whether it is an output, or becomes a gradient.
  bool is_seen_outside(Graph::Id id) const { return seen_.contains(id); }
  /// The one call that reads it, if there is one and nothing else does.
  std::optional<size_t> only_reader(Graph::Id id) const;
  /// Whether a call after `first` and before `last` writes to its memory.
  bool is_written(Graph::Id id, size_t first, size_t last) const;
  /// Whether a call before this one does.
  bool is_written_before(Graph::Id id, size_t call) const { return !writers(id).empty() && writers(id)[0] < call; }
  /// Whether a call after `first` and before `last` reads its memory.
  bool is_read_between(Graph::Id id, size_t first, size_t last) const;
  /// Whether nothing reads its memory after this call, and calls alone made it.
  bool is_free_after(Graph::Id id, size_t call) const;

 private:
  using Calls = std::unordered_map<Graph::Id, std::vector<size_t>>;

  static const std::vector<size_t>& calls_of(const Calls& calls, Graph::Id id) {
    static const std::vector<size_t> none;
    const auto found = calls.find(id);
    return found == calls.end() ? none : found->second;
  }
  const std::vector<size_t>& writers(Graph::Id id) const { return calls_of(writers_, graph_.info(id).memory); }

  const Graph& graph_;
  std::unordered_map<Graph::Id, size_t> makers_;
  Calls readers_, writers_;  // of tensors, of memories
  std::unordered_set<Graph::Id> seen_;
};

/// Puts these calls in the place of the graph's calls of those numbers; none leaves a call out.
void exchange_calls(Graph& graph, std::map<size_t, std::vector<Graph::Call>> instead);

}  // namespace rush::compiler
