// Fusion: neighbouring element-wise calls of a graph, and reductions of their rows, become one loop.
#pragma once
#include <vector>

#include "autograd/compile/graph.h"

namespace rush::compiler {

// Note [Which calls are fused]
// Calls of element-wise operators that follow one another, on one device, and give tensors of the same sizes, become
// one FusedLoop. Between them may stand calls that neither read nor write what the loop writes, and do not write what
// it reads: those go before it. Sums over other dimensions, such as the gradients of weights, element-wise calls of
// other sizes that stand between, such as autocast's casts of weights, and what is made of these alone go after it, as
// long as it needs none of that. A tensor that only the loop reads is not made at all. Loops of fewer
// kernels than `fewest_kernels` stay calls, and one of hundreds ends there.
//
// A reduction of the last dimension joins the loop of its input's sizes, and so do calls on one element for each row
// that follow it: softmax and the norms become one loop, Note [Row loops]. Such a loop makes every tensor that it
// writes, once. A view of what a loop makes that only repeats rows' elements, as expand and unsqueeze do, stands for it
// within the loop, and is made after it where others read it. Reductions that the backends split over threads stay
// calls: rows that are few and long. A reduction of all dimensions joins a loop whose elements follow each other
// wherever they lie, as one row.

/// Which tensors of the graph are read by calls that are not `inside`, are returned, or become gradients. `inside` has
/// places of calls, in their order.
std::vector<bool> seen_outside(const Graph& graph, const std::vector<size_t>& inside);

/// Makes loops of a graph's calls: see Note [Which calls are fused].
void fuse_element_wise_calls(Graph& graph, size_t fewest_kernels);

}  // namespace rush::compiler
