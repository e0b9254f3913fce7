// Activation checkpointing: less memory for the forward pass, paid for with a second one.
#pragma once
#include <functional>

#include "autograd/node.h"

namespace rush::autograd {

/// How checkpoint() runs its function the second time.
struct CheckpointOptions {
  /// The second run draws the random numbers of the first. Where other threads draw from the same default generator
  /// meanwhile, it cannot, and gradients are wrong without an error, as in PyTorch: let `fn` draw from a generator that
  /// it makes itself, of a fixed seed.
  bool preserve_rng_state = true;
};

// Note [Checkpointing]
// `fn` runs as always and its graph is recorded, but hooks (autograd/saved_tensors_hooks.h) keep only a number in the
// place of each tensor that the graph would save. When the backward pass asks for the first of them, `fn` runs again on
// the same inputs, and the tensors that this run saves, in the same order, are the ones that were left out. They are
// freed again as the backward pass goes on. The graph is an ordinary one, so everything that works without
// checkpointing works with it: tensors that `fn` takes from elsewhere, such as weights, grad(), double backward,
// checkpoints inside.

/// Returns fn(inputs), keeping of what it computes only the inputs. `fn` must do the same each time it runs, and is
/// kept until the graph is freed. The backward pass throws Error when the second run saves other tensors than the
/// first, or when an input was written in place since. torch.utils.checkpoint.checkpoint with use_reentrant=False.
Tensors checkpoint(std::function<Tensors(const Tensors&)> fn, const Tensors& inputs,
                   const CheckpointOptions& options = {});
/// The same for one tensor in and one out.
Tensor checkpoint(std::function<Tensor(const Tensor&)> fn, const Tensor& input, const CheckpointOptions& options = {});

}  // namespace rush::autograd
