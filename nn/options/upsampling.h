#pragma once
#include <optional>
#include <vector>

#include "nn/arg.h"
#include "nn/enum.h"

namespace rush::nn {

/// Either the size or the scale factor is given, one number for each spatial dimension.
struct UpsampleOptions {
  using mode_t = std::variant<enumtype::kNearest, enumtype::kLinear, enumtype::kBilinear, enumtype::kBicubic,
                              enumtype::kTrilinear>;
  RUSH_ARG(std::optional<std::vector<int64_t>>, size) = std::nullopt;
  RUSH_ARG(std::optional<std::vector<double>>, scale_factor) = std::nullopt;
  RUSH_ARG(mode_t, mode) = kNearest;
  // Whether the outermost elements of input and output coincide; not for kNearest.
  RUSH_ARG(std::optional<bool>, align_corners) = std::nullopt;
};

/// The modules of one mode, which libtorch does not have.
struct UpsamplingOptions {
  RUSH_ARG(std::optional<std::vector<int64_t>>, size) = std::nullopt;
  RUSH_ARG(std::optional<std::vector<double>>, scale_factor) = std::nullopt;
};
using UpsamplingNearest2dOptions = UpsamplingOptions;
using UpsamplingBilinear2dOptions = UpsamplingOptions;

/// torch.nn.ChannelShuffle, which libtorch does not have.
struct ChannelShuffleOptions {
  ChannelShuffleOptions(int64_t groups) : groups_(groups) {}
  RUSH_ARG(int64_t, groups);
};

/// (N, C r^2, H, W) -> (N, C, H r, W r) with r = upscale_factor.
struct PixelShuffleOptions {
  PixelShuffleOptions(int64_t upscale_factor) : upscale_factor_(upscale_factor) {}
  RUSH_ARG(int64_t, upscale_factor);
};

/// (N, C, H r, W r) -> (N, C r^2, H, W) with r = downscale_factor.
struct PixelUnshuffleOptions {
  PixelUnshuffleOptions(int64_t downscale_factor) : downscale_factor_(downscale_factor) {}
  RUSH_ARG(int64_t, downscale_factor);
};

namespace functional {

/// As UpsampleOptions, and how an image is made smaller.
struct InterpolateFuncOptions {
  using mode_t = std::variant<enumtype::kNearest, enumtype::kLinear, enumtype::kBilinear, enumtype::kBicubic,
                              enumtype::kTrilinear, enumtype::kArea, enumtype::kNearestExact>;
  RUSH_ARG(std::optional<std::vector<int64_t>>, size) = std::nullopt;
  RUSH_ARG(std::optional<std::vector<double>>, scale_factor) = std::nullopt;
  RUSH_ARG(mode_t, mode) = kNearest;
  RUSH_ARG(std::optional<bool>, align_corners) = std::nullopt;
  // Whether the scale is computed from the sizes that it led to, instead of used as it is.
  RUSH_ARG(std::optional<bool>, recompute_scale_factor) = std::nullopt;
  // Whether kBilinear and kBicubic look at all elements between when they make an image smaller.
  RUSH_ARG(bool, antialias) = false;
};

using ChannelShuffleFuncOptions = ChannelShuffleOptions;
using PixelShuffleFuncOptions = PixelShuffleOptions;
using PixelUnshuffleFuncOptions = PixelUnshuffleOptions;

}  // namespace functional
}  // namespace rush::nn
