// Trains a GPT-2 on a text's tokens and counts what it costs.
#pragma once

#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "examples/gpt/gpt.h"
#include "examples/gpt/text_data.h"
#include "examples/mesh_gpt/training.h"
#include "examples/precision.h"
#include "examples/processes/processes.h"
#include "examples/run_log.h"
#include "examples/warmup_cosine.h"
#include "rushlight.h"

namespace examples {

struct PretrainingOptions {
  int64_t batch_size = 12;       // blocks that are in memory at once: a micro-batch
  int64_t total_batch_size = 0;  // tokens in a step, a multiple of those in a micro-batch; 0: one micro-batch
  int64_t max_iters = 100, warmup_iters = 10;
  double learning_rate = 6e-4, min_lr = 6e-5, weight_decay = 0.1, beta1 = 0.9, beta2 = 0.95, grad_clip = 1;
  int64_t eval_interval = 250, eval_iters = 20;
  int64_t seed = 1337;
  rush::Device device = rush::kCPU;
  std::string dtype = "float32";  // one of Precision::names
  bool graph = false;             // steps, with all of their micro-batches, are a CUDA graph
  MeshOptions mesh;
  bool on_mesh = false;  // the model is a MeshNet's, as `mesh` says; otherwise each process has all of it

  rush::optim::AdamWOptions adamw() const {
    return rush::optim::AdamWOptions(learning_rate).betas({beta1, beta2}).weight_decay(weight_decay).capturable(graph);
  }

  WarmupCosine rates() const { return {warmup_iters, max_iters, min_lr / learning_rate}; }
};

/// What a step did and took.
struct StepReport {
  double loss;  // before the step
  double learning_rate;
  double grad_norm;  // before it was clipped
  double seconds;
};

/// How many micro-batches of `batch_size` blocks make a step of `total_batch_size` tokens (0: one micro-batch's).
/// Throws rush::ValueError unless it is a whole number.
int64_t micro_batches(int64_t total_batch_size, int64_t batch_size, int64_t block_size);

/// Two steps on the meta device, with as many checkpointed blocks, for rush::estimate_memory.
void rehearse_pretraining(const GPTConfig& config, PretrainingOptions options, int64_t checkpointed_blocks);

/// Floating-point operations of the forward and the backward pass for one token: 6 for each parameter but the
/// positions', and 12 L H Q T for attention to T tokens. Chowdhery et al., "PaLM" (2022), appendix B.
double flops_per_token(const GPTImpl& model);

/// What the device can do in a second in bfloat16, without sparsity, by NVIDIA's data sheet; 0 where this is not known.
double known_peak_flops(rush::Device device);

class Pretraining {
 public:
  /// Trains `model`, which moves to the device. Where there are several processes, each computes its rows of every
  /// micro-batch, or, on a mesh, trains its part of the model: `model` is then what `gather` fills. Throws
  /// rush::ValueError as micro_batches does, for a graph that is not on a GPU or of several processes, for
  /// micro-batches that they cannot split evenly, and as MeshNet does.
  Pretraining(GPT model, TextData data, const PretrainingOptions& options, RunLog& log,
              const Processes* processes = nullptr);

  /// Averages the gradients over the micro-batches of a step, lets AdamW take it and logs it. Waits for the device.
  StepReport step();
  /// What a step does, on tokens that have no values: for a run on the meta device.
  void rehearse();
  /// The loss on random blocks, the same ones each time.
  double estimate(TextData::Split split);

  /// Writes all that the run consists of, see Notes [Checkpoints] and [Checkpoints on a mesh]. Every process calls it,
  /// but before the first step only the first one. Throws rush::IOError, and rush::ValueError rather than write weights
  /// that are not finite.
  void save(const std::string& path);
  /// Makes this run that of the checkpoint. Throws rush::IOError if it is damaged, and rush::ValueError if it is one of
  /// another model or text, of other settings or of more steps. Other rates, lengths, dropout or devices are allowed
  /// where `changes` is given, which gets a line for each.
  void load(const std::string& path, std::vector<std::string>* changes = nullptr);

  int64_t iteration() const { return iteration_; }
  int64_t tokens_in_step() const { return micro_batches_ * options_.batch_size * model_->config().block_size; }
  rush::Device device() const { return options_.device; }
  /// On a mesh, `gather` has it be what is trained, on the first process's host. Every process calls that.
  GPTImpl& model() { return *model_; }
  void gather();
  const TextData& data() const { return data_; }
  /// The least estimate so far that the caller found worth keeping; infinite: none.
  double& best_loss() { return best_loss_; }
  /// Of the last step of this process; NaN before it.
  double last_loss() const { return last_loss_; }
  /// Which the checkpoint has, too.
  RunLog& log() { return log_; }

 private:
  std::vector<rush::Tensor> parameters() const { return mesh_ ? mesh_->parameters() : model_->parameters(); }
  std::unique_ptr<MeshNet> make_mesh_net() const;
  rush::Checkpoint checkpoint(std::vector<std::string>* changes);
  rush::Tensor loss_of(const TextData::Batch& batch);
  rush::Tensor rows(const rush::Tensor& batch) const { return together_ ? processes_->rows(batch) : batch; }
  rush::Tensor mean(const rush::Tensor& number) const { return together_ ? processes_->mean(number) : number; }
  // Has `grad` be the mean over a step's micro-batches, and returns their loss.
  rush::Tensor compute_gradients(const rush::Tensor& inputs, const rush::Tensor& next);
  // Takes a step on all blocks (N, T) of its micro-batches, and gives its loss and the gradient's norm before it was
  // clipped, both on the device. Does not wait.
  rush::Tensor take_step(const rush::Tensor& inputs, const rush::Tensor& next);

  PretrainingOptions options_;
  RunLog& log_;
  const Processes* const processes_;
  GPT model_;
  rush::nn::DistributedDataParallel<GPTLossImpl> together_{nullptr};  // where there are several processes
  TextData data_;
  int64_t micro_batches_;
  Precision precision_;
  const std::unique_ptr<MeshNet> mesh_;  // null: each process has the whole model
  rush::amp::GradScaler scaler_;
  rush::Generator generator_;  // of batches
  rush::optim::AdamW optimizer_;
  rush::optim::LambdaLR schedule_;
  using StepFunction = std::function<rush::Tensor(const rush::Tensor&, const rush::Tensor&)>;
  std::optional<rush::graphs::GraphedStep<StepFunction>> graphed_step_;
  int64_t iteration_ = 0;
  double best_loss_, last_loss_ = std::numeric_limits<double>::quiet_NaN();
};

}  // namespace examples
