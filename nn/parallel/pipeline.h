// Pipeline parallelism: processes train the stages of a net on micro-batches. ScheduleGPipe, Schedule1F1B,
// ScheduleInterleaved1F1B.
#pragma once
#include <functional>
#include <optional>
#include <vector>

#include "nn/parallel/pipeline_order.h"
#include "nn/parallel/pipeline_stage.h"

namespace rush::nn::parallel {

// Note [Executing a pipeline]
// A process goes through its list of actions. Receives are posted ahead of their use and sends are not waited for
// before the step's end, so that both go on while the process computes: Note [Messages of a pipeline]. A stage's input
// is a leaf of a graph of its own, which its backward pass frees; the gradient of that leaf is what goes back.
//
// In the first step, the first message from a stage to the next one comes after one that tells the shape, the dtype and
// whether there is a gradient. The receiver cannot have memory ready before, so it waits for that one where it posts
// the receive: the sender needs nothing that this process sends later. From then on all activations between these
// stages are such, and so are their gradients. Where nothing requires a gradient (ids, or the output of frozen layers)
// none comes back.

/// Trains a net whose stages are on the processes of a group. Every process makes one with its own stages, and calls
/// the same functions in the same order. The subclasses have PyTorch's schedules; any other order can be given.
/// torch.distributed.pipelining's _PipelineSchedule.
class PipelineSchedule {
 public:
  /// A scalar of the last stage's output for a micro-batch and the rows of the target.
  using LossFunction = std::function<Tensor(const Tensor& output, const Tensor& target)>;

  /// `stages` are this process's, in increasing order: those of indices rank, rank + P, ... for P processes. Only the
  /// last stage's process needs a loss, and only for `step`. Throws ValueError for stages that are others, or not as
  /// many as `order` says, and what `simulate` throws.
  PipelineSchedule(std::vector<PipelineStage> stages, const PipelineOrder& order, LossFunction loss = nullptr);

  /// Forward and backward passes of all micro-batches, which are equally many rows (dimension 0) of `input` and
  /// `target` each. To `grad` of the parameters adds the gradient of the mean of the micro-batches' losses. Returns
  /// that mean, without a graph, on the process of the last stage, and an undefined tensor elsewhere. `input` is for
  /// the process of the first stage, `target` for that of the last; others may leave them out or pass the same.
  ///
  /// Throws ValueError for rows that cannot be shared out equally, a missing tensor or loss, a loss that is no scalar,
  /// and an output of another shape or dtype than in the first step; what stages and the loss throw; and
  /// DistributedError as collectives do. The other processes wait for this one until the time-out, so the program
  /// should end.
  Tensor step(const Tensor& input = {}, const Tensor& target = {});
  /// Forward passes alone, without recording: returns the last stage's outputs one below the other, on its process.
  /// Rows may be more or fewer than in `step`, but are as many in each call. Throws as `step` does.
  Tensor eval(const Tensor& input = {});

  /// Says beforehand that all activations between stages are of this dtype and shape, and have gradients, so that no
  /// process waits for shapes in the first step, as in a dry run, whose neighbours send none. All processes call it, or
  /// none. The input_args of torch.distributed.pipelining.PipelineStage.
  void expect_activations(ScalarType dtype, IntArrayRef sizes);

  const std::vector<PipelineStage>& stages() const { return stages_; }
  std::vector<Tensor> parameters() const;                // of the modules of this process's stages
  const PipelineOrder& order() const { return order_; }  // without messages

 private:
  class Run;
  // What goes from a stage to the next one: Note [Executing a pipeline].
  struct Boundary {
    ScalarType dtype;
    std::vector<int64_t> sizes;
    bool requires_grad;
    bool operator==(const Boundary&) const = default;
  };
  // Of steps or of evaluations: this process's actions and, as far as it is known, what each stage makes.
  struct Program {
    std::vector<PipelineAction> actions;
    std::vector<std::optional<Boundary>> outputs;
  };
  Program program_of(const PipelineOrder& order) const;

  std::vector<PipelineStage> stages_;
  distributed::Group messages_;  // of the stages' processes
  PipelineOrder order_;
  LossFunction loss_;
  Program training_, evaluation_;
};

/// All forward passes first: Note [Pipeline schedules].
class ScheduleGPipe : public PipelineSchedule {
 public:
  /// One stage on each process. Throws as PipelineSchedule and gpipe_order do.
  ScheduleGPipe(PipelineStage stage, int micro_batches, LossFunction loss = nullptr);
};

/// Backward passes as early as possible, which takes less memory.
class Schedule1F1B : public PipelineSchedule {
 public:
  /// One stage on each process. Throws as PipelineSchedule and one_f_one_b_order do.
  Schedule1F1B(PipelineStage stage, int micro_batches, LossFunction loss = nullptr);
};

/// 1F1B with several stages on each process, which wait less.
class ScheduleInterleaved1F1B : public PipelineSchedule {
 public:
  /// Equally many stages on each process. Throws as PipelineSchedule and interleaved_1f1b_order do.
  ScheduleInterleaved1F1B(std::vector<PipelineStage> stages, int micro_batches, LossFunction loss = nullptr);
};

}  // namespace rush::nn::parallel
