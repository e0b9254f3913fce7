// Uses: which calls of a graph make, read and write its tensors.
#pragma once
#include <optional>
#include <vector>

#include "autograd/compile/graph.h"

namespace rush::compiler {

/// Where the tensors of a graph are used, by the places of calls in it. It must be made again when calls have changed.
class Uses {
 public:
  explicit Uses(const Graph& graph);

  /// The call whose result this is; none of an input or a constant.
  std::optional<size_t> maker(Graph::Id id) const { return makers_[static_cast<size_t>(id)]; }
  /// The calls that have it as an argument, in their order.
  const std::vector<size_t>& readers(Graph::Id id) const { return readers_[static_cast<size_t>(id)]; }
  /// Whether it is an output, or becomes a gradient.
  bool is_seen_outside(Graph::Id id) const { return is_seen_[static_cast<size_t>(id)]; }
  /// The one call that reads it, if there is one and nothing else does.
  std::optional<size_t> only_reader(Graph::Id id) const;
  /// Whether a call after `first` and before `last` writes to its memory.
  bool is_written(Graph::Id id, size_t first, size_t last) const;
  /// Whether a call before this one does.
  bool is_written_before(Graph::Id id, size_t call) const { return !writers(id).empty() && writers(id)[0] < call; }
  /// Whether nothing reads its memory after this call, and calls alone made it.
  bool is_free_after(Graph::Id id, size_t call) const;

 private:
  const std::vector<size_t>& writers(Graph::Id id) const {
    return writers_[static_cast<size_t>(graph_.tensors[static_cast<size_t>(id)].memory)];
  }

  const Graph& graph_;
  std::vector<std::optional<size_t>> makers_;
  std::vector<std::vector<size_t>> readers_, writers_;  // of tensors, of memories
  std::vector<bool> is_seen_;
};

}  // namespace rush::compiler
