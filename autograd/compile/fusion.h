// Fusion: neighbouring element-wise calls of a graph become one loop.
#pragma once
#include "autograd/compile/graph.h"

namespace rush::compiler {

// Note [Which calls are fused]
// Calls of element-wise operators that follow one another, on one device, and give tensors of the same sizes, become
// one FusedLoop. Between them may stand calls that neither read nor write what the loop writes, and do not write what
// it reads: those go before it. A tensor that only the loop reads is not made at all. Loops of fewer kernels than
// `fewest_kernels` stay calls.

/// Makes loops of a graph's calls: see Note [Which calls are fused].
void fuse_element_wise_calls(Graph& graph, size_t fewest_kernels);

}  // namespace rush::compiler
