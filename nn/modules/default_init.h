// How linear layers and convolutions start. Not part of the API: the modules' sources include it.
#pragma once
#include <cmath>

#include "nn/init.h"

namespace rush::nn::detail {

// Fills both, uniform within 1 / sqrt(fan_in): the default of torch.nn.Linear and of the convolutions. An undefined
// bias, and that of a layer without inputs, is left alone.
inline void reset_weight_and_bias(const Tensor& weight, const Tensor& bias) {
  init::kaiming_uniform_(weight, std::sqrt(5.0));
  const auto [fan_in, fan_out] = init::_calculate_fan_in_and_fan_out(weight);
  if (bias.defined() && fan_in > 0) {
    const double bound = 1 / std::sqrt(static_cast<double>(fan_in));
    init::uniform_(bias, -bound, bound);
  }
}

}  // namespace rush::nn::detail
