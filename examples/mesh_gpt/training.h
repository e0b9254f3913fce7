// How mesh_gpt trains on one of a mesh's processes, and what memory that takes.
#pragma once
#include <string>
#include <vector>

#include "core/memory/estimate.h"
#include "examples/mesh_gpt/model.h"
#include "examples/options.h"
#include "nn/parallel/pipeline.h"
#include "nn/parallel/plan.h"
#include "optim/adam.h"

namespace examples {

/// `dp` of 0 is as many processes as are left.
struct MeshTrainingOptions {
  MeshGPTConfig model;
  int64_t dp = 0, fsdp = 1, tp = 1, cp = 1, pp = 1, stages_per_process = 1, micro_batches = 1;
  std::string schedule = "1f1b";  // gpipe, 1f1b or interleaved
  int64_t batch_size = 16;        // of all processes
  double learning_rate = 1e-3, weight_decay = 0.1;
  int64_t seed = 1337;
  std::string device = "cpu";

  /// The options of the mesh and of the model's sizes.
  void add_to(Options& options);

  /// The same for the planner, where `dp` of 0 is 1.
  rush::nn::parallel::TransformerShape shape() const;
  rush::nn::parallel::TrainingMesh mesh() const;
  void set_shape(const rush::nn::parallel::TransformerShape& shape);
  void set_mesh(const rush::nn::parallel::TrainingMesh& mesh);
};

/// "--pp 2 --micro_batches 8 --fsdp 4": without what is 1.
std::string options_text(const rush::nn::parallel::TrainingMesh& mesh);

/// One process's part of the model, and its steps. Throws ValueError where the mesh does not fit the processes, the
/// model or the batch.
class MeshTraining {
 public:
  explicit MeshTraining(const MeshTrainingOptions& options);

  /// Trains on this process's rows of a batch, (B, T) each. Returns their mean loss on processes of the last stage, an
  /// undefined tensor elsewhere.
  rush::Tensor step(const rush::Tensor& ids, const rush::Tensor& targets);
  /// Their mean loss, without training.
  rush::Tensor evaluate(const rush::Tensor& ids, const rush::Tensor& targets);

  int64_t rows() const { return options_.batch_size / replicas(); }  // of a batch, for this process
  rush::Tensor own_rows(const rush::Tensor& batch) const;
  const rush::distributed::DeviceMesh& mesh() const { return mesh_; }
  rush::nn::parallel::PipelineSchedule& schedule() { return schedule_; }
  const rush::nn::parallel::PipelineSchedule& schedule() const { return schedule_; }
  rush::optim::AdamW& optimizer() { return optimizer_; }

 private:
  int64_t replicas() const { return mesh_.size("dp") * mesh_.size("fsdp"); }
  std::vector<rush::nn::parallel::PipelineStage> make_stages();
  rush::nn::parallel::PipelineSchedule::LossFunction make_loss() const;
  void average_gradients() const;

  const MeshTrainingOptions options_;
  const rush::distributed::DeviceMesh mesh_;
  std::vector<rush::Tensor> of_positions_;
  rush::nn::parallel::PipelineSchedule schedule_;
  rush::optim::AdamW optimizer_;
};

/// What a step takes on process `rank` of the options' mesh, apart from what making the model takes: by a dry run on
/// the meta device, in which no other process takes part. Throws as MeshTraining does, and Error where there are groups
/// already.
rush::MemoryEstimate estimate_mesh_training(MeshTrainingOptions options, int rank, rush::Device device);
/// The peak on the process that needs most, in bytes.
int64_t most_memory_of_mesh(const MeshTrainingOptions& options, rush::Device device);

}  // namespace examples
