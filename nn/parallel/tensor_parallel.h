// Tensor parallelism: layers whose weights are split among the processes of a group.
#pragma once
#include <optional>

#include "nn/arg.h"
#include "nn/modules/embedding.h"
#include "nn/modules/linear.h"
#include "nn/parallel/group_dims.h"

namespace rush::nn {

namespace parallel {

// Note [Tensor parallelism]
// A perceptron or an attention whose width is split: a ColumnParallelLinear gives each process some of the features (or
// heads), element-wise functions and attention heads compute with them alone, and a RowParallelLinear adds the
// processes' results up. So there is one all_reduce a block in the forward pass, and one in the backward pass:
//
//   x, whole -> ColumnParallelLinear -> gelu, split -> RowParallelLinear -> y, whole
//
// With `sequence_dim` what is between such blocks is split by positions of the sequence, so that nothing is computed or
// kept twice: each all_reduce becomes an all_gather before and a reduce_scatter behind, which together send as much.
// Parameters of the norms then have partial gradients: sum_gradients.

/// How the results and inputs of parallel layers lie.
struct ParallelLinearOptions {
  /// Of ColumnParallelLinear: the result has all features, on all processes.
  RUSH_ARG(bool, gather_output) = false;
  /// The dimension in which the input of ColumnParallelLinear, and the result of RowParallelLinear, are split by
  /// positions of the sequence. None: they are whole.
  RUSH_ARG(std::optional<int64_t>, sequence_dim);
};

/// A module that has parts of some parameters: what the three below share.
class SplitModule : public Module {
 public:
  /// The dimension in which its own parameter of that name is split, equally; none for one that is whole.
  virtual std::optional<int64_t> split_dim(std::string_view) const { return 0; }
  /// Among whose processes a parameter is split; null for one that no such module has split.
  static distributed::Group group_of(const Tensor& parameter);
  const distributed::Group& group() const { return group_; }  // among whose processes
  void pretty_print(std::ostream& stream) const override;
  ~SplitModule() override;

  ParallelLinearOptions options;
  Tensor weight, bias;  // this process's parts; an embedding has no bias

 protected:
  SplitModule(const char* name, distributed::Group group, const ParallelLinearOptions& options)
      : Module(name), options(options), group_(std::move(group)) {}
  // Registers the process's part of a whole parameter, which may be undefined.
  Tensor register_part(const char* name, const Tensor& whole);
  // Of results of which each process has a summand.
  Tensor sum_of(const Tensor& partial) const;

  const distributed::Group group_;
};

/// See ColumnParallelLinear. weight (out / processes, in), bias (out / processes).
class ColumnParallelLinearImpl final : public SplitModule {
 public:
  ColumnParallelLinearImpl(const Linear& whole, distributed::Group group, const ParallelLinearOptions& options = {});
  /// (..., in) -> (..., out / processes), or (..., out) with `gather_output`.
  Tensor forward(const Tensor& input);
};

/// See RowParallelLinear. weight (out, in / processes), bias (out).
class RowParallelLinearImpl final : public SplitModule {
 public:
  RowParallelLinearImpl(const Linear& whole, distributed::Group group, const ParallelLinearOptions& options = {});
  /// (..., in / processes) -> (..., out).
  Tensor forward(const Tensor& input);
  std::optional<int64_t> split_dim(std::string_view parameter) const override;
};

/// See VocabParallelEmbedding. weight (rows / processes, width).
class VocabParallelEmbeddingImpl final : public SplitModule {
 public:
  VocabParallelEmbeddingImpl(const Embedding& whole, distributed::Group group,
                             const ParallelLinearOptions& options = {});
  /// Indices of any shape -> (..., width). With `sequence_dim` the result is split in it. Throws IndexError for an
  /// index of no row: on an accelerator, when the host next waits for it.
  Tensor forward(const Tensor& indices);
};

/// The mean cross entropy of scores (..., classes / processes) that are split in their last dimension, and targets
/// (...) of integers: a number, the same on all processes. No process ever has all scores of a row. Throws IndexError
/// for a target that is no class, on an accelerator when the host next waits for it, and ValueError for targets of
/// another shape.
Tensor vocab_parallel_cross_entropy(const Tensor& scores, const Tensor& targets, const distributed::Group& group);

}  // namespace parallel

/// y = x weight^T + bias, of which each process has some features: Note [Tensor parallelism]. Of a Linear, which is the
/// same on all processes, it takes its rows. In the backward pass, what the collective sends travels while the weight's
/// gradient is computed. Throws ValueError where the features cannot be split equally.
/// torch.distributed.tensor.parallel.ColwiseParallel.
struct ColumnParallelLinear : ModuleHolder<parallel::ColumnParallelLinearImpl> {
  using ModuleHolder::ModuleHolder;
};
/// y = x weight^T + bias of an input of which each process has some features; each multiplies its columns of the
/// weight, and the results are added up. The bias is whole, and added once.
/// torch.distributed.tensor.parallel.RowwiseParallel.
struct RowParallelLinear : ModuleHolder<parallel::RowParallelLinearImpl> {
  using ModuleHolder::ModuleHolder;
};
/// An Embedding of whose rows each process has some; it finds zeros for the others, and results are added up.
struct VocabParallelEmbedding : ModuleHolder<parallel::VocabParallelEmbeddingImpl> {
  using ModuleHolder::ModuleHolder;
};

}  // namespace rush::nn
