#pragma once
#include "nn/options/norm.h"

namespace rush::nn::functional {

// Normalises each channel of (N, C, ...) over everything else: by the batch's own mean and variance while training,
// which also enter the running ones; by the running ones otherwise.
Tensor batch_norm(const Tensor& input, const Tensor& running_mean, const Tensor& running_var,
                  const BatchNormFuncOptions& options = {});
// Normalises over the last dimensions, whose sizes are `normalized_shape`.
Tensor layer_norm(const Tensor& input, const LayerNormFuncOptions& options);
// Divides by the root mean square over the last dimensions. Zhang and Sennrich, "Root mean square layer normalization"
// (2019).
Tensor rms_norm(const Tensor& input, const RMSNormFuncOptions& options);
// Normalises each group of channels of each sample of (N, C, ...).
Tensor group_norm(const Tensor& input, const GroupNormFuncOptions& options);
// input / max(||input||_p, eps) along a dimension.
Tensor normalize(const Tensor& input, const NormalizeFuncOptions& options = {});

}  // namespace rush::nn::functional
