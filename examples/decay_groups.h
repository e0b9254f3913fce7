// Which parameters of a transformer AdamW lets decay.
#pragma once

#include <vector>

#include "optim/adam.h"

namespace examples {

/// Two groups with `options`: matrices, which decay; biases and what normalisations learn, which do not.
std::vector<rush::optim::OptimizerParamGroup> decay_groups(const std::vector<rush::Tensor>& parameters,
                                                           const rush::optim::AdamWOptions& options);

}  // namespace examples
