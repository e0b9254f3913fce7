// Notices that a training has diverged.
#pragma once

#include <string>
#include <vector>

#include "core/tensor.h"

namespace examples {

/// Throws rush::ValueError unless `loss` is finite: "`when`: the loss is nan; ...". `when` is "iteration 30".
void check_loss(double loss, const std::string& when);

/// Throws rush::ValueError unless all parameters are finite: a step from a finite loss may have been too long. Waits
/// for the device.
void check_weights(const std::vector<rush::Tensor>& parameters, const std::string& when);

}  // namespace examples
