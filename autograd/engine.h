// The backward pass.
#pragma once
#include <optional>
#include <vector>

#include "autograd/node.h"

namespace rush {

// Note [The engine]
// The backward pass runs on the caller's thread. A heap holds the nodes whose gradients have begun to arrive; the one
// with the highest sequence number has all of them (Note [The graph]), so it is taken off, applied, and its results are
// added to the buffers of the nodes its edges lead to. A gradient is brought to the shape and dtype of the forward
// output it belongs to as it is delivered: summed over broadcast dimensions, cast, its imaginary part dropped for a
// real output. Nothing recurses, so the depth of the graph does not matter.

/// Of one backward pass.
struct BackwardOptions {
  bool retain_graph = false;    // keep what the nodes saved
  bool create_graph = false;    // record the backward pass itself
  bool accumulate = true;       // into the leaves' `grad`; otherwise gradients are only returned
  bool ends_at_inputs = false;  // what is behind an input, and its hooks, are left to another backward pass
};

/// Runs from `roots` with their gradients and returns the gradients at `inputs` (undefined where none arrives). With
/// inputs given, only what leads to them is computed.
Tensors run_backward(const std::vector<Edge>& roots, const Tensors& gradients, const std::vector<Edge>& inputs,
                     const BackwardOptions& options);

namespace autograd {

/// Adds the gradients of `tensors` to the leaves' `grad`; with `inputs` only to those, which need not be leaves. A
/// missing gradient means one, for tensors of one element. `retain_graph` defaults to `create_graph`.
/// torch::autograd::backward.
void backward(TensorList tensors, TensorList grad_tensors = {}, std::optional<bool> retain_graph = std::nullopt,
              bool create_graph = false, TensorList inputs = {});

/// Returns the gradients of the sum of `outputs` with respect to `inputs`, and changes no `grad`. Throws Error when an
/// input was not used, unless `allow_unused`: then its gradient is undefined. torch::autograd::grad.
Tensors grad(TensorList outputs, TensorList inputs, TensorList grad_outputs = {},
             std::optional<bool> retain_graph = std::nullopt, bool create_graph = false, bool allow_unused = false);

}  // namespace autograd
}  // namespace rush
