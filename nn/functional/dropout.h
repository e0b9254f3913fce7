#pragma once
#include "core/tensor.h"
#include "nn/options/dropout.h"

namespace rush::nn::functional {

// Sets elements to zero with probability p and scales the rest by 1 / (1 - p), while training.
Tensor dropout(Tensor input, const DropoutFuncOptions& options = {});
// The same with whole channels of (N, C, L), (N, C, H, W), (N, C, D, H, W) or of an input without N.
Tensor dropout1d(Tensor input, const Dropout1dFuncOptions& options = {});
Tensor dropout2d(Tensor input, const Dropout2dFuncOptions& options = {});
Tensor dropout3d(Tensor input, const Dropout3dFuncOptions& options = {});

}  // namespace rush::nn::functional
