// Modules without parameters that move or resize what lies in space: Fold, Unfold, Upsample, PixelShuffle,
// PixelUnshuffle, ChannelShuffle and the paddings.
#pragma once
#include "nn/modules/options_module.h"
#include "nn/options/fold.h"
#include "nn/options/padding.h"
#include "nn/options/upsampling.h"

namespace rush::nn {

// torch.nn.Fold and so on: forward(input) is the function of nn::functional.
#define RUSH_FORALL_RESAMPLERS(X)    \
  X(Fold, fold)                      \
  X(Unfold, unfold)                  \
  X(PixelShuffle, pixel_shuffle)     \
  X(PixelUnshuffle, pixel_unshuffle) \
  X(ChannelShuffle, channel_shuffle)

// On (N, C, spatial...) or (C, spatial...). torch.nn.ReflectionPad1d and so on.
// clang-format off
#define RUSH_FORALL_PADDINGS(X)                               \
  X(ReflectionPad1d) X(ReflectionPad2d) X(ReflectionPad3d)    \
  X(ReplicationPad1d) X(ReplicationPad2d) X(ReplicationPad3d) \
  X(CircularPad1d) X(CircularPad2d) X(CircularPad3d)          \
  X(ZeroPad1d) X(ZeroPad2d) X(ZeroPad3d)                      \
  X(ConstantPad1d) X(ConstantPad2d) X(ConstantPad3d)
// clang-format on

// The bases of the paddings, by libtorch's names, for modules that a program derives from them.
RUSH_OPTIONS_BASE(ReflectionPad)
RUSH_OPTIONS_BASE(ReplicationPad)
RUSH_OPTIONS_BASE(ZeroPad)
RUSH_OPTIONS_BASE(ConstantPad)

// torch.nn.Fold, torch.nn.ZeroPad2d and so on, with their options: forward(input) is the function of nn::functional.
#define RUSH_RESAMPLER_MODULE(Name, ...) RUSH_OPTIONS_MODULE(Name)
RUSH_FORALL_RESAMPLERS(RUSH_RESAMPLER_MODULE)
RUSH_FORALL_PADDINGS(RUSH_RESAMPLER_MODULE)
#undef RUSH_RESAMPLER_MODULE

/// Resizes by interpolation: functional::interpolate. torch.nn.Upsample.
RUSH_OPTIONS_MODULE(Upsample)
// Upsample of (N, C, H, W) by kNearest, and by kBilinear with aligned corners. torch.nn.UpsamplingNearest2d,
// UpsamplingBilinear2d.
RUSH_OPTIONS_MODULE(UpsamplingNearest2d)
RUSH_OPTIONS_MODULE(UpsamplingBilinear2d)

}  // namespace rush::nn
