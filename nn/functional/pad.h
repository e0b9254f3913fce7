#pragma once
#include "core/tensor.h"
#include "nn/options/pad.h"

namespace rush::nn::functional {

/// Widens the last dimensions: with a number, the mirror image (without the edge itself), the edge, or the other end.
/// Negative numbers cut, with a constant only. Throws ValueError when a mirror or the other end is too small.
Tensor pad(const Tensor& input, const PadFuncOptions& options);

}  // namespace rush::nn::functional
