// FusionGroup: calls of a graph that are to become one loop.
#pragma once
#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "autograd/compile/graph.h"
#include "autograd/compile/lowering.h"

namespace rush::compiler {

/// The kernels of a call, if a loop of its device's backend can have them; nothing for other calls.
std::optional<std::vector<LoweredKernel>> fusible_kernels(const Graph& graph, const Graph::Call& call);

/// Whether a loop over `sizes` may reduce its rows, of elements of so many bytes: not where they are so short that
/// calls of kernels cost more than their elements, nor so long or so few that a backend splits them over threads, or
/// that a cache does not hold some of them. A GPU may have a single row, too, which it does not split either.
bool suits_rows(IntArrayRef sizes, int64_t element_size, Device device);

/// Whether two views are parts of one tensor that have no element in common, as what narrow gives side by side.
bool are_apart(const Graph::TensorInfo& a, const Graph::TensorInfo& b);

/// Calls that are to become one loop, and those that wait until it has run: see Note [Which calls are fused].
class FusionGroup {
 public:
  explicit FusionGroup(const Graph& graph) : graph_(graph) {}

  /// How many kernels its calls consist of.
  size_t kernels() const { return kernels_.size(); }
  /// Adds a call, which consists of these kernels, if it fits; false otherwise.
  bool add(const Graph::Call& call, const std::vector<LoweredKernel>& kernels);
  /// Adds a view that stands for what the loop makes, element by element or repeated over rows; false for other calls.
  bool add_view(const Graph::Call& call);
  /// Whether the call can go before the loop: it reads nothing that the loop writes, and writes nothing that the loop
  /// reads or writes. False for what the program does without operators.
  bool is_independent_of(const Graph::Call& call) const;
  /// Takes a call that is to go after the loop: a sum of what the loop makes over other dimensions than rows', or
  /// fusible calls of other sizes, or what follows from those alone; false for others, and where many wait already.
  bool add_follower(const Graph::Call& call, bool is_fusible);
  /// The loop as a call, and the views that are read outside of it. `is_seen` tells which tensors are. Nothing but
  /// casts stay calls: Note [Casts of lists].
  std::vector<Graph::Call> calls(std::vector<bool> is_seen) const;

 private:
  const Graph::TensorInfo& info(Graph::Id id) const { return graph_.info(id); }
  // Whether kernels that use these tensors, and write some of them, can be in the loop: Note [Which calls are fused].
  bool fits_memory(const std::vector<Graph::Id>& used, const std::vector<Graph::Id>& written) const;
  // Whether one of the tensors lies in one of these memories.
  template <class Memories>
  bool any_in(const Memories& memories, const std::vector<Graph::Id>& ids) const {
    return std::ranges::any_of(ids, [&](Graph::Id id) { return memories.contains(info(id).memory); });
  }
  bool reads_loop(const Graph::Call& call) const { return any_in(written_, Graph::tensors_of(call.arguments)); }
  bool reads_follower(const Graph::Call& call) const {
    return any_in(made_by_followers_, Graph::tensors_of(call.arguments));
  }
  // Whether the call reads what a follower makes, or writes what one reads.
  bool touches_followers(const Graph::Call& call) const {
    return reads_follower(call) || any_in(read_by_followers_, call.written);
  }
  // What a view of the loop's tensors stands for; other tensors stand for themselves.
  Graph::Id made_by_loop(Graph::Id id) const;
  // Whether the loop may have these kernels, too, and is not too long then.
  bool is_short_with(const std::vector<LoweredKernel>& kernels) const;
  // Whether they walk the loop's elements, or its rows where it has them.
  bool fits_sizes(const std::vector<LoweredKernel>& kernels) const;
  bool can_have_rows(const std::vector<LoweredKernel>& more, const DimVector& sizes, bool are_one) const;
  bool gives_rows(const LoweredKernel& kernel) const;
  void note_results(const Graph::Call& call);
  void place(const std::vector<LoweredKernel>& kernels);
  int64_t stride_of(Graph::Id id, size_t d) const;
  std::vector<Graph::Call> views_seen(std::vector<bool>& is_seen) const;
  Graph::Call loop(const std::vector<bool>& is_seen) const;

  const Graph& graph_;
  DimVector sizes_;
  Device device_;
  std::vector<LoweredKernel> kernels_;
  std::vector<Graph::Call> calls_;             // that they are of
  std::set<Graph::Id> made_;                   // what is new
  std::set<Graph::Id> read_;                   // all that its kernels use, what they write included
  std::set<int32_t> memories_;                 // of those
  std::multimap<int32_t, Graph::Id> written_;  // what it writes and makes, by memory
  std::set<Graph::Id> rows_;                   // one element for each row
  std::vector<Graph::Call> views_;             // of what it makes
  std::map<Graph::Id, Graph::Id> stands_for_;  // those, and what they stand for
  std::set<int32_t> read_by_followers_, made_by_followers_;
  bool reduces_ = false, is_one_row_ = false;
  int temporaries_ = 0, followers_ = 0;
};

}  // namespace rush::compiler
