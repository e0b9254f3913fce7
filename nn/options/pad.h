#pragma once
#include <vector>

#include "nn/arg.h"
#include "nn/enum.h"

namespace rush::nn::functional {

/// How much is put around the input, and what: `value` for kConstant, else elements of the input.
struct PadFuncOptions {
  using mode_t = std::variant<enumtype::kConstant, enumtype::kReflect, enumtype::kReplicate, enumtype::kCircular>;
  /// Before and after the last dimension, then before and after the one in front of it, and so on.
  PadFuncOptions(std::vector<int64_t> pad) : pad_(std::move(pad)) {}
  RUSH_ARG(std::vector<int64_t>, pad);
  RUSH_ARG(mode_t, mode) = kConstant;
  RUSH_ARG(double, value) = 0;
};

}  // namespace rush::nn::functional
