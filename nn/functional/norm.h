#pragma once
#include "nn/options/norm.h"

namespace rush::nn::functional {

/// Normalises each channel of (N, C, ...) over everything else: by the batch's own mean and variance while training,
/// which also enter the running ones; by the running ones otherwise.
Tensor batch_norm(const Tensor& input, const Tensor& running_mean, const Tensor& running_var,
                  const BatchNormFuncOptions& options = {});
/// relu(batch_norm(input) + residual) in fewer passes, without the sum where `residual` is undefined:
/// rush::batch_norm_relu.
Tensor batch_norm_relu(const Tensor& input, const Tensor& residual, const Tensor& running_mean,
                       const Tensor& running_var, const BatchNormFuncOptions& options = {});
/// Normalises over the last dimensions, whose sizes are `normalized_shape`.
Tensor layer_norm(const Tensor& input, const LayerNormFuncOptions& options);
/// Divides by the root mean square over the last dimensions. Zhang and Sennrich, "Root mean square layer normalization"
/// (2019).
Tensor rms_norm(const Tensor& input, const RMSNormFuncOptions& options);
/// Normalises each group of channels of each sample of (N, C, ...).
Tensor group_norm(const Tensor& input, const GroupNormFuncOptions& options);
/// Normalises each channel of each sample of (N, C, spatial...); by the running mean and variance, where there are any
/// and use_input_stats is off. Ulyanov et al., "Instance normalization" (2016).
Tensor instance_norm(const Tensor& input, const InstanceNormFuncOptions& options = {});
/// input / (k + alpha mean of input^2 over `size` neighbouring channels)^beta, on (N, C, spatial...). Krizhevsky et
/// al., "ImageNet classification with deep convolutional neural networks" (2012), section 3.3.
Tensor local_response_norm(const Tensor& input, const LocalResponseNormFuncOptions& options);
/// input / max(||input||_p, eps) along a dimension.
Tensor normalize(const Tensor& input, const NormalizeFuncOptions& options = {});

}  // namespace rush::nn::functional
