// How a GPT trains on one of a mesh's processes, and what memory that takes.
#pragma once
#include <string>
#include <vector>

#include "core/distributed/checkpoint_folder.h"
#include "core/memory/estimate.h"
#include "examples/mesh_gpt/model.h"
#include "examples/options.h"
#include "examples/plan/planner.h"
#include "nn/parallel/pipeline.h"
#include "optim/adam.h"

namespace examples {

/// How processes share a training. `dp` of 0 is as many processes as are left.
struct MeshOptions {
  int64_t dp = 0, fsdp = 1, tp = 1, cp = 1, pp = 1, stages_per_process = 1, micro_batches = 1;
  std::string schedule = "1f1b";  // gpipe, 1f1b or interleaved
  bool sequence_parallel = false;
  bool checkpoint_blocks = false;  // not an option of the mesh's own: MemoryOptions

  void add_to(Options& options);
  /// Whether more is asked for than what processes with the whole model do.
  bool need_mesh() const { return fsdp * tp * cp * pp * micro_batches > 1; }

  /// The same for the planner, where `dp` of 0 is 1.
  TrainingMesh mesh() const;
  void set_mesh(const TrainingMesh& mesh);
};

/// "--pp 2 --micro_batches 8 --fsdp 4": without what is 1.
std::string options_text(const TrainingMesh& mesh);

/// One process's part of a GPT, and its gradients: Note [GPT-2 on a mesh].
class MeshNet {
 public:
  /// Takes its part of `whole`, which is the same on all processes, to the device. A step has so many micro-batches.
  /// Alone, the process becomes a world of its own. Throws ValueError where the mesh does not fit the processes or the
  /// model.
  MeshNet(const GPT& whole, const MeshOptions& options, int64_t micro_batches, const Precision& precision,
          rush::Device device);

  /// Of this process; shards, where parameters are sharded.
  std::vector<rush::Tensor> parameters() const { return schedule_.parameters(); }
  /// They lie so in those of the whole model, by GPT-2's names. For sharded checkpoints.
  std::vector<rush::distributed::TensorPart> parts() const;

  /// This process's rows of a batch. Throws ValueError where they cannot be split into micro-batches.
  rush::Tensor own_rows(const rush::Tensor& batch) const;
  /// Has `grad` of the parameters be the gradient of the mean loss of all processes' rows: of tokens and targets (B, T)
  /// of this one. Their grad is undefined before. Returns the mean loss of the own rows on processes of the last stage,
  /// an undefined tensor elsewhere.
  rush::Tensor compute_gradients(const rush::Tensor& ids, const rush::Tensor& targets);
  /// Their mean loss, without gradients. Of as many rows each time.
  rush::Tensor evaluate(const rush::Tensor& ids, const rush::Tensor& targets);

  // The rest is for all processes to call together.

  /// The mean of what compute_gradients or evaluate has returned on each: a number in float64, on the device.
  rush::Tensor mean_of(const rush::Tensor& loss) const;
  /// The norm of the whole model's gradient: a number on the device.
  rush::Tensor gradient_norm() const;
  /// Copies the parameters to `whole`, on every process on which that is not on the meta device.
  void gather(GPTImpl& whole) const;

  const rush::distributed::DeviceMesh& mesh() const { return mesh_; }
  rush::nn::parallel::PipelineSchedule& schedule() { return schedule_; }

 private:
  int64_t replicas() const { return mesh_.size("dp") * mesh_.size("fsdp"); }
  std::vector<rush::nn::parallel::PipelineStage> make_stages(const GPT& whole, const MeshModelOptions& options);
  rush::nn::parallel::PipelineSchedule::LossFunction make_loss() const;
  void add_gradients_of_tokens() const;
  void average_gradients() const;
  std::vector<rush::distributed::TensorPart> own_parts() const;

  const MeshOptions options_;
  const rush::Device device_;
  const rush::distributed::DeviceMesh mesh_;
  std::vector<rush::Tensor> of_positions_;
  const std::vector<rush::nn::parallel::PipelineStage> stages_;
  rush::nn::parallel::PipelineSchedule schedule_, evaluation_;
};

/// What mesh_gpt trains.
struct MeshTrainingOptions : MeshOptions {
  GPTConfig model{.vocab_size = 128, .block_size = 64, .n_layer = 4, .n_head = 4, .n_embd = 128};
  int64_t batch_size = 16;  // of all processes
  double learning_rate = 1e-3, weight_decay = 0.1;
  int64_t seed = 1337;
  std::string device = "cpu";

  /// The options of the mesh and of the model's sizes.
  void add_to(Options& options);

  /// The same for the planner.
  TransformerShape shape() const;
  void set_shape(const TransformerShape& shape);
};

/// A MeshNet and its optimiser.
class MeshTraining : public MeshNet {
 public:
  /// Throws as MeshNet, and ValueError where the mesh does not fit the batch.
  explicit MeshTraining(const MeshTrainingOptions& options);

  /// Trains on this process's rows of a batch. Returns what compute_gradients does.
  rush::Tensor step(const rush::Tensor& ids, const rush::Tensor& targets);
  rush::optim::AdamW& optimizer() { return optimizer_; }

 private:
  rush::optim::AdamW optimizer_;
};

/// What a step takes on process `rank` of the options' mesh, apart from what making the model takes: by a dry run on
/// the meta device, in which no other process takes part. Throws as MeshTraining does, and Error where there are groups
/// already.
rush::MemoryEstimate estimate_mesh_training(MeshTrainingOptions options, int rank, rush::Device device);
/// The peak on the process that needs most, in bytes.
int64_t most_memory_of_mesh(const MeshTrainingOptions& options, rush::Device device);

}  // namespace examples
