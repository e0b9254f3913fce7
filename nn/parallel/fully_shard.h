// fully_shard: a module whose parameters, gradients and optimiser states are split among processes.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "core/distributed/process_group.h"
#include "nn/arg.h"
#include "nn/module.h"

namespace rush::nn::parallel {

/// The dtypes of FSDP2's MixedPrecisionPolicy; where one is not given, the parameters' own.
struct MixedPrecisionPolicy {
  /// Parameters are gathered in it, and the module computes with them; shards stay as they are. Inputs are not cast.
  RUSH_ARG(std::optional<ScalarType>, param_dtype);
  /// Gradients are added up over processes in it; `grad` has the dtype of the shard.
  RUSH_ARG(std::optional<ScalarType>, reduce_dtype);
};

/// Shards, their gradients, and therefore the optimiser's states and its step are on the CPU. FSDP2's CPUOffloadPolicy.
struct CPUOffloadPolicy {
  /// Whether shards lie in pinned memory, from which a GPU copies faster. Without such a device they never do.
  RUSH_ARG(bool, pin_memory) = true;
};

/// The keyword arguments of torch.distributed.fsdp.fully_shard.
struct FullyShardOptions {
  /// The processes among which rows are split; null: all.
  RUSH_ARG(distributed::Group, process_group);
  /// For hybrid sharding: processes that have the same rows as this one, each from another shard group, over which
  /// gradients are averaged as well; null: none. Of a mesh {"replicate", "shard"} the two dimensions' groups.
  RUSH_ARG(distributed::Group, replicate_group);
  /// Whether whole parameters are freed after the module's forward, and gathered again for its backward. Not given: for
  /// all modules but the outermost, whose backward comes next.
  RUSH_ARG(std::optional<bool>, reshard_after_forward);
  RUSH_ARG(MixedPrecisionPolicy, mp_policy);
  /// Given: between uses, parameters are on the CPU. They are gathered on the device on which they were before.
  RUSH_ARG(std::optional<CPUOffloadPolicy>, offload_policy);
};

/// Splits the parameters of the module that no earlier call has taken, in place. Each becomes its shard: of N rows
/// (dimension 0) on P processes the rows from rank * ceil(N / P) on, at most ceil(N / P); the last processes may have
/// fewer rows, or none. Called on blocks first and on the whole module last; the parameters of one call are gathered
/// and reduced together, so a block is what should be whole at a time.
///   for (const auto& block : *net->blocks) fully_shard(*block);
///   fully_shard(net);
///   rush::optim::AdamW optimizer(net->parameters(), 1e-3);  // of shards: so are its states
///   loss(net(x), y).backward();                             // x: this process's part of the batch
///   optimizer.step();
/// During a forward call, `net(x)` or a call with a ModuleScope (a plain `net->forward(x)` of a class of your own has
/// none), parameters are whole; so they are in the backward pass. After it, each `grad` is the mean over all processes
/// of the gradient of the shard's rows, added to what it was. Frozen parameters are gathered, too. All processes start
/// from the parameters of the first one. Every process makes the same calls, and uses the same parameters: one that no
/// process uses gets no gradient. A parameter that two modules share belongs to a call on what contains both. From one
/// thread. Note [Sharded parameters].
///
/// Throws DistributedError where there is no process group, or the processes' parameters differ in shape or dtype;
/// Error for a module that has been sharded; ValueError for a parameter of no dimension (make it one of shape {1}), for
/// a view, and for one that is shared with a module sharded alone; TypeError for a sparse parameter, for dtypes that
/// differ within the call, and for a policy's dtype that is not floating point.
void fully_shard(Module& module, const FullyShardOptions& options = {});
template <class M>
void fully_shard(const ModuleHolder<M>& module, const FullyShardOptions& options = {}) {
  fully_shard(static_cast<Module&>(*module), options);
}

/// Whether backward passes reduce the gradients of the module and all below it: true at first. Without, they are added
/// up whole on each process, for the micro-batches of a step but the last, whose backward pass reduces the sums.
/// FSDPModule.set_requires_gradient_sync.
void set_requires_gradient_sync(Module& module, bool on);

/// The whole of a sharded parameter, a new tensor outside the graph; another tensor as it is. Every process of its
/// group calls it. DTensor.full_tensor.
Tensor full_tensor(const Tensor& parameter);

/// As nn::utils::clip_grad_norm_, for parameters of which some are sharded, or split by SplitModules: the norm is that
/// of the whole gradients, and the same on all processes. Every process calls it with the same parameters, in the same
/// order. Throws ValueError unless norm_type is above 0.
double clip_grad_norm_(const std::vector<Tensor>& parameters, double max_norm, double norm_type = 2.0,
                       bool error_if_nonfinite = false);

}  // namespace rush::nn::parallel
