#pragma once
#include "core/tensor.h"
#include "nn/options/dropout.h"

namespace rush::nn::functional {

/// Sets elements to zero with probability p and scales the rest by 1 / (1 - p), while training.
Tensor dropout(Tensor input, const DropoutFuncOptions& options = {});
/// The same with whole channels of (N, C, L), (N, C, H, W), (N, C, D, H, W). Without a dimension, 1d and 3d take the
/// input for one without N, and 2d takes it for (N, C, L), as PyTorch does. Of inputs of other dimensions 2d and 3d
/// warn, and 1d throws ValueError.
Tensor dropout1d(Tensor input, const Dropout1dFuncOptions& options = {});
Tensor dropout2d(Tensor input, const Dropout2dFuncOptions& options = {});
Tensor dropout3d(Tensor input, const Dropout3dFuncOptions& options = {});
/// Dropout that keeps mean 0 and deviation 1 of what SELU puts out: see rush::alpha_dropout. The second drops whole
/// channels.
Tensor alpha_dropout(Tensor input, const AlphaDropoutFuncOptions& options = {});
Tensor feature_alpha_dropout(Tensor input, const FeatureAlphaDropoutFuncOptions& options = {});

}  // namespace rush::nn::functional
