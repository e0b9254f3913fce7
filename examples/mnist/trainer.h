// Trains the demo's net and remembers how it went.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "examples/mnist/digit_sets.h"
#include "examples/mnist/net.h"
#include "examples/svg_chart.h"
#include "rushlight.h"

namespace examples {

struct TrainerOptions {
  int64_t epochs, batch_size;
  double lr;  // the highest of the one cycle
  rush::Device device;
};

/// What a net says about a set of digits.
struct Evaluation {
  double loss, accuracy;
  rush::Tensor predicted, confidence;  // (N) the digits, and the probabilities given to them, on the CPU
};

/// How the training went; x counts epochs.
struct History {
  std::vector<ChartPoint> train_loss, train_accuracy;  // a point a step
  std::vector<ChartPoint> test_loss, test_accuracy;    // a point an epoch
  double seconds = 0;                                  // spent training
};

class Trainer {
 public:
  Trainer(const DigitSets& digits, const TrainerOptions& options);

  /// Shows every training digit to the net once, in random order, then tests it. Reports on the terminal.
  /// Epochs count from 0; the learning rate ends where the last one does.
  void run_epoch(int64_t epoch);

  /// Runs the net over the test set. Nothing is learned.
  Evaluation evaluate();

  const History& history() const { return history_; }
  int64_t parameter_count() const;
  /// Writes the weights and running statistics, by name, as a safetensors file. Throws rush::IOError.
  void save(const std::string& path) const;

 private:
  using Dataset =
      rush::data::datasets::MapDataset<rush::data::datasets::TensorPairDataset, rush::data::transforms::Stack<>>;
  using Loader = rush::data::DataLoader<Dataset, rush::data::samplers::RandomSampler>;

  struct Step {
    double loss, accuracy;
  };
  Step learn(const rush::Tensor& images, const rush::Tensor& targets);

  const DigitSets& digits_;
  TrainerOptions options_;
  int64_t steps_per_epoch_;
  std::unique_ptr<Loader> loader_;
  Net net_;
  rush::optim::AdamW optimizer_;
  rush::optim::OneCycleLR schedule_;
  History history_;
};

}  // namespace examples
