// Lowering: the element-wise kernels and reductions that a call of a graph consists of.
#pragma once
#include <memory>
#include <optional>
#include <vector>

#include "autograd/compile/graph.h"
#include "core/compile/element_wise_loop.h"

namespace rush::compiler {

/// One element-wise kernel or reduction, and what it reads and writes.
struct LoweredKernel {
  /// A tensor of the graph, or, where `id` is kNone, what another kernel of the same call left.
  struct Operand {
    Graph::Id id = Graph::kNone;
    int temporary = -1;
    ScalarType dtype = kFloat32;
  };
  std::shared_ptr<const IteratorCall> call;
  std::vector<Operand> operands;   // the output first
  DimVector sizes;                 // that it walks
  Reduces how = Reduces::Nothing;  // the last dimension of its input, which is contiguous, or
  bool takes_all = false;          // all of them
  bool reduces() const { return how != Reduces::Nothing; }
};

/// An argument of a call with tensors on the meta device that are like those of the graph.
Value on_meta(const Graph::Argument& argument, const Graph& graph);

// Note [Lowering]
// Which kernels an operator runs, with which operands, its front decides from sizes, strides and dtypes: so the front
// is asked. It is called with tensors on the meta device, where a kernel has nothing to do; a KernelListener hears of
// each that would have run. Nothing has to be written down a second time, and the kernels that come out are the very
// ones that run without the compiler: with the operands' promotion, the casts before and after, and the numbers.

/// The kernels of a call of an element-wise operator, or of a reduction over the last dimension or all, in their order.
/// Nothing for other calls.
std::optional<std::vector<LoweredKernel>> lowered_kernels(const Graph& graph, const Graph::Call& call);

}  // namespace rush::compiler
