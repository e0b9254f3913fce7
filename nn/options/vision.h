#pragma once
#include <optional>

#include "nn/arg.h"
#include "nn/enum.h"

namespace rush::nn::functional {

/// How values between pixels and outside of the image are computed.
struct GridSampleFuncOptions {
  using mode_t = std::variant<enumtype::kBilinear, enumtype::kNearest, enumtype::kBicubic>;
  using padding_mode_t = std::variant<enumtype::kZeros, enumtype::kBorder, enumtype::kReflection>;
  RUSH_ARG(mode_t, mode) = kBilinear;
  // What lies outside the image: nothing, its border pixels, or its reflection.
  RUSH_ARG(padding_mode_t, padding_mode) = kZeros;
  // Whether -1 and 1 are the centres of the outermost pixels, rather than their outer sides. Default: false.
  RUSH_ARG(std::optional<bool>, align_corners) = std::nullopt;
};

}  // namespace rush::nn::functional
