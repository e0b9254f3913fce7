#pragma once
#include <functional>

#include "core/tensor.h"

namespace examples {

/// Calls step(), which returns a loss on whatever device, `steps` times, and prints the loss and the time that passed
/// about five times on the way. Only then is the device waited for. Throws rush::ValueError for a loss that is not
/// finite, and rush::IOError where stdout cannot be written.
void train_and_report(int64_t steps, const std::function<rush::Tensor()>& step);

}  // namespace examples
