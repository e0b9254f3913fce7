#pragma once
#include "nn/options/conv.h"

namespace rush::nn::functional {

/// Cross-correlation: (N, C, L), (O, C / groups, K) -> (N, O, L'); likewise with two and three dimensions, and without
/// N.
Tensor conv1d(const Tensor& input, const Tensor& weight, const Conv1dFuncOptions& options = {});
Tensor conv2d(const Tensor& input, const Tensor& weight, const Conv2dFuncOptions& options = {});
Tensor conv3d(const Tensor& input, const Tensor& weight, const Conv3dFuncOptions& options = {});
/// The transpose as a linear map: (N, C, L), (C, O / groups, K) -> (N, O, L'); output_padding adds to one side of L'.
Tensor conv_transpose1d(const Tensor& input, const Tensor& weight, const ConvTranspose1dFuncOptions& options = {});
Tensor conv_transpose2d(const Tensor& input, const Tensor& weight, const ConvTranspose2dFuncOptions& options = {});
Tensor conv_transpose3d(const Tensor& input, const Tensor& weight, const ConvTranspose3dFuncOptions& options = {});

}  // namespace rush::nn::functional
