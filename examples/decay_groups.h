// Which parameters of a transformer AdamW lets decay.
#pragma once

#include <vector>

#include "optim/adam.h"
#include "optim/schedules/factor_schedules.h"

namespace examples {

/// Two groups with `options`: matrices, which decay; biases and what normalisations learn, which do not.
std::vector<rush::optim::OptimizerParamGroup> decay_groups(const std::vector<rush::Tensor>& parameters,
                                                           const rush::optim::AdamWOptions& options);

/// Gives an optimiser of such groups `options`, and its schedule the learning rate of these, times `factor` for the
/// step that comes next: what a checkpoint brought from before is that of the run until there.
void set_decay_options(rush::optim::AdamW& optimizer, rush::optim::LambdaLR& schedule,
                       const rush::optim::AdamWOptions& options, double factor);

}  // namespace examples
