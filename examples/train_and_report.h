#pragma once
#include <functional>

#include "core/tensor.h"
#include "examples/run_log.h"

namespace examples {

/// A step of a training: its learning rate, and how many of what it trains on.
struct TrainingStep {
  double learning_rate;
  const char* samples;
  double count;
};

/// Calls take(), which returns a loss on whatever device, `steps` times, logs the loss as "loss/train" with what next()
/// says of the step to come, and prints loss and time about five times on the way. Only then is the device waited for.
/// Throws rush::ValueError for a loss that is not finite, and rush::IOError where stdout cannot be written.
void train_and_report(int64_t steps, RunLog& log, const std::function<TrainingStep()>& next,
                      const std::function<rush::Tensor()>& take);

}  // namespace examples
