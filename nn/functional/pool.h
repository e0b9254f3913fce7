#pragma once
#include <tuple>

#include "core/tensor.h"
#include "nn/options/pool.h"

namespace rush::nn::functional {

/// The largest element of each window of the last one, two or three dimensions.
Tensor max_pool1d(const Tensor& input, const MaxPool1dFuncOptions& options);
Tensor max_pool2d(const Tensor& input, const MaxPool2dFuncOptions& options);
Tensor max_pool3d(const Tensor& input, const MaxPool3dFuncOptions& options);
/// The mean of each window.
Tensor avg_pool1d(const Tensor& input, const AvgPool1dFuncOptions& options);
Tensor avg_pool2d(const Tensor& input, const AvgPool2dFuncOptions& options);
Tensor avg_pool3d(const Tensor& input, const AvgPool3dFuncOptions& options);
/// (sum of x^p)^(1 / p) of each window, p being the norm_type; not a number where an odd p makes the sum negative.
Tensor lp_pool1d(const Tensor& input, const LPPool1dFuncOptions& options);
Tensor lp_pool2d(const Tensor& input, const LPPool2dFuncOptions& options);
Tensor lp_pool3d(const Tensor& input, const LPPool3dFuncOptions& options);
/// The mean of windows that divide the input into output_size parts.
Tensor adaptive_avg_pool1d(const Tensor& input, const AdaptiveAvgPool1dFuncOptions& options);
Tensor adaptive_avg_pool2d(const Tensor& input, const AdaptiveAvgPool2dFuncOptions& options);
Tensor adaptive_avg_pool3d(const Tensor& input, const AdaptiveAvgPool3dFuncOptions& options);
/// The largest element of each of such windows.
Tensor adaptive_max_pool1d(const Tensor& input, const AdaptiveMaxPool1dFuncOptions& options);
Tensor adaptive_max_pool2d(const Tensor& input, const AdaptiveMaxPool2dFuncOptions& options);
Tensor adaptive_max_pool3d(const Tensor& input, const AdaptiveMaxPool3dFuncOptions& options);

// The largest element of each window, and its position within its plane.
#define RUSH_WITH_INDICES(function, Options) \
  std::tuple<Tensor, Tensor> function##_with_indices(const Tensor& input, const Options& options);
RUSH_WITH_INDICES(max_pool1d, MaxPool1dFuncOptions)
RUSH_WITH_INDICES(max_pool2d, MaxPool2dFuncOptions)
RUSH_WITH_INDICES(max_pool3d, MaxPool3dFuncOptions)
RUSH_WITH_INDICES(adaptive_max_pool1d, AdaptiveMaxPool1dFuncOptions)
RUSH_WITH_INDICES(adaptive_max_pool2d, AdaptiveMaxPool2dFuncOptions)
RUSH_WITH_INDICES(adaptive_max_pool3d, AdaptiveMaxPool3dFuncOptions)
RUSH_WITH_INDICES(fractional_max_pool2d, FractionalMaxPool2dFuncOptions)
RUSH_WITH_INDICES(fractional_max_pool3d, FractionalMaxPool3dFuncOptions)
#undef RUSH_WITH_INDICES

/// The largest element of windows at steps that are a fraction: see rush::fractional_max_pool2d. Throws ValueError
/// unless either the output's size is given or its ratio to the input's.
Tensor fractional_max_pool2d(const Tensor& input, const FractionalMaxPool2dFuncOptions& options);
Tensor fractional_max_pool3d(const Tensor& input, const FractionalMaxPool3dFuncOptions& options);

/// Puts pooled values back to the positions in `indices`, zeros elsewhere. Throws ValueError for an output_size that
/// pooling would not have made to the input's.
Tensor max_unpool1d(const Tensor& input, const Tensor& indices, const MaxUnpool1dFuncOptions& options);
Tensor max_unpool2d(const Tensor& input, const Tensor& indices, const MaxUnpool2dFuncOptions& options);
Tensor max_unpool3d(const Tensor& input, const Tensor& indices, const MaxUnpool3dFuncOptions& options);

}  // namespace rush::nn::functional
