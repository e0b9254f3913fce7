// Trains the demo's net and remembers how it went.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "examples/late_numbers.h"
#include "examples/mnist/digit_sets.h"
#include "examples/mnist/net.h"
#include "examples/precision.h"
#include "examples/processes/processes.h"
#include "examples/run_log.h"
#include "rushlight.h"

namespace examples {

class Progress;
class StopRequest;

struct TrainerOptions {
  int64_t epochs, batch_size;
  double lr;  // the highest of the one cycle
  rush::Device device;
  std::string checkpoint = "";                  // the file from which a run goes on; empty: none
  int64_t checkpoint_interval = 100;            // steps
  int64_t seed = 0;                             // noted in the checkpoint
  std::string dtype = "float32";                // one of Precision::names
  bool graph = false;                           // steps are captured in a CUDA graph
  bool compile = false;                         // steps are traced and run as a graph of calls
  std::string resume_command = "";              // printed for who stops the run
  std::vector<std::string>* changes = nullptr;  // where a checkpoint's device may be noted, if another is allowed
  const Processes* processes = nullptr;         // those that train together; null: this one alone
};

/// What a net says about a set of digits.
struct Evaluation {
  double loss, accuracy;
  rush::Tensor predicted, confidence;  // (N) the digits, and the probabilities given to them, on the CPU
};

/// Two steps on the meta device, for rush::estimate_memory.
void rehearse_training(int64_t batch_size, const std::string& dtype);

class Trainer {
 public:
  /// Logs "loss/train" and "accuracy/train" at every step, and "loss/test" and "accuracy/test" after each epoch. Each
  /// of several processes takes its rows of every batch.
  Trainer(const DigitSets& digits, const TrainerOptions& options, RunLog& log);

  /// Shows every training digit to the net once, in random order, then tests it. Reports on the terminal. The learning
  /// rate ends where the last epoch does. A checkpoint that cannot be written is a warning. Throws Stopped, after it
  /// saved the run, where a signal asked for that, and rush::ValueError where the training has diverged.
  void run_epoch();
  /// The epoch that comes next, or goes on; from 0.
  int64_t epoch() const { return epoch_; }

  /// Makes this run that of the checkpoint, with the same numbers from there on; false if there is no such file.
  /// Throws rush::IOError if it is damaged, rush::ValueError if it is one of a run with other settings.
  bool resume();
  /// Writes the checkpoint. Throws rush::IOError, and rush::ValueError rather than write weights that are not finite.
  void save_checkpoint();

  /// Runs the net over the test set. Nothing is learned.
  Evaluation evaluate();

  /// How many steps were done.
  int64_t step() const { return step_; }
  /// The time spent training.
  double seconds() const { return seconds_; }
  int64_t parameter_count() const;
  /// Writes the weights and running statistics, by name, as a safetensors file. Throws rush::IOError.
  void save(const std::string& path) const;

 private:
  using Stacked =
      rush::data::datasets::MapDataset<rush::data::datasets::TensorPairDataset, rush::data::transforms::Stack<>>;
  using Dataset = rush::data::datasets::MapDataset<Stacked, rush::data::transforms::PinMemory<>>;
  using Loader = rush::data::DataLoader<Dataset, rush::data::samplers::RandomSampler>;

  void learn(const rush::Tensor& images, const rush::Tensor& targets);
  void try_to_save(Progress& progress);
  [[noreturn]] void stop(const StopRequest& request);
  // What a step's numbers add to the log; `shown` are the bar's.
  struct Shown {
    double loss = 0, accuracy = 0;
    int64_t steps = 0;
  };
  void note_results(Shown& shown, bool all);
  // The steps of several processes, or of a program that asked for a compiled or captured one.
  void prepare_step();
  rush::Tensor take_plain_step(const rush::Tensor& images, const rush::Tensor& targets);
  // One step of the training, compiled if that was asked for; the loss and the share of the digits that were right, on
  // the device.
  rush::Tensor take_step(const rush::Tensor& images, const rush::Tensor& targets);
  rush::Checkpoint checkpoint();  // all that a run consists of

  const DigitSets& digits_;
  TrainerOptions options_;
  int64_t steps_per_epoch_;
  std::unique_ptr<Loader> loader_;
  rush::data::DevicePrefetcher<Loader> batches_;
  Net net_;
  rush::nn::DistributedDataParallel<NetImpl> together_{nullptr};  // where there are several processes
  Precision precision_;
  rush::amp::GradScaler scaler_;
  rush::optim::AdamW optimizer_;
  rush::optim::OneCycleLR schedule_;
  using StepFunction = std::function<rush::Tensor(const rush::Tensor&, const rush::Tensor&)>;
  std::optional<rush::Compiled<StepFunction>> compiled_step_;
  std::optional<rush::graphs::GraphedStep<StepFunction>> graphed_step_;
  LateNumbers results_;  // loss and accuracy of each step
  RunLog& log_;
  int64_t epoch_ = 0, step_ = 0;  // `step_`: those whose numbers are known
  double seconds_ = 0;
};

}  // namespace examples
