// Lab 16, the fuser: this file takes the place of autograd/compile/fusion.cpp. What the members mean stands in
// autograd/compile/fusion_group.h, what each function has to do in docs/labs/fusion.md. Write them in this order;
// `./rush lab 16` checks them in this order.
#include "autograd/compile/fusion.h"

#include <algorithm>
#include <deque>
#include <iterator>
#include <numeric>
#include <optional>

#include "autograd/compile/fusion_group.h"

namespace rush::compiler {

// Whether kernels that use the tensors `used`, and write those in `written`, can be in the loop. info(id).memory tells
// which tensors share what they hold.
bool FusionGroup::fits_memory(const std::vector<Graph::Id>& used, const std::vector<Graph::Id>& written) const {
  RUSH_THROW(NotImplementedError, "begin here: compare the ", used.size(), " tensors that the call uses, and the ",
             written.size(), " that it writes, with those that the loop reads and writes, which are ", read_.size());
}

// Whether the call can go before the loop.
bool FusionGroup::is_independent_of(const Graph::Call& call) const {
  if (!call.op || touches_followers(call)) return false;
  RUSH_THROW(NotImplementedError, "next: compare the memory of what ", call.name,
             " reads and writes with that of what the loop does");
}

// For each tensor of the graph whether something else than the calls `inside` needs it.
std::vector<bool> seen_outside(const Graph& graph, const std::vector<size_t>& inside) {
  RUSH_THROW(NotImplementedError, "next: look at the ", graph.calls.size() - inside.size(),
             " other calls, and at what the graph returns and what becomes a gradient");
}

// The walk. A call that is put into `calls` runs in its place there. `rest` has the places of those that are left.
void fuse_element_wise_calls(Graph& graph, size_t fewest_kernels) {
  std::vector<Graph::Call> calls;
  std::optional<FusionGroup> group;
  std::deque<size_t> rest(graph.calls.size());
  std::iota(rest.begin(), rest.end(), size_t{0});
  RUSH_THROW(NotImplementedError, "last: make loops of at least ", fewest_kernels, " kernels from the ", rest.size(),
             " calls, of which ", calls.size(), " are done, and no group is open: ", !group.has_value());
}

}  // namespace rush::compiler
