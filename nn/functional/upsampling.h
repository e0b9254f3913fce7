#pragma once
#include "core/tensor.h"
#include "nn/options/upsampling.h"

namespace rush::nn::functional {

/// Resizes the spatial dimensions of (N, C, ...) to a size or by a scale factor: see core/ops/nn/upsample.h for the
/// modes; kArea takes means. Throws ValueError unless exactly one of the two is given, with one number or one for each
/// dimension, and for a mode that the number of dimensions does not have.
/// `antialias` is for kBilinear and kBicubic.
Tensor interpolate(const Tensor& input, const InterpolateFuncOptions& options = {});
/// (..., C r^2, H, W) -> (..., C, H r, W r), and back.
Tensor pixel_shuffle(const Tensor& input, const PixelShuffleFuncOptions& options);
Tensor pixel_unshuffle(const Tensor& input, const PixelUnshuffleFuncOptions& options);
/// (N, groups n, ...): channel g n + i becomes channel i groups + g.
Tensor channel_shuffle(const Tensor& input, const ChannelShuffleFuncOptions& options);

}  // namespace rush::nn::functional
