#pragma once
#include <optional>
#include <vector>

#include "core/tensor.h"
#include "nn/arg.h"

namespace rush::nn {

/// eps is added to the variance. affine: with a learned weight and bias of each channel.
struct BatchNormOptions {
  BatchNormOptions(int64_t num_features) : num_features_(num_features) {}
  RUSH_ARG(int64_t, num_features);
  RUSH_ARG(double, eps) = 1e-5;
  // The weight of the newest batch in the running statistics; without one, all batches count alike.
  RUSH_ARG(std::optional<double>, momentum) = 0.1;
  RUSH_ARG(bool, affine) = true;
  RUSH_ARG(bool, track_running_stats) = true;
};
using BatchNorm1dOptions = BatchNormOptions;
using BatchNorm2dOptions = BatchNormOptions;
using BatchNorm3dOptions = BatchNormOptions;

/// As BatchNormOptions; unless asked for, neither affine nor with running statistics.
struct InstanceNormOptions {
  InstanceNormOptions(int64_t num_features) : num_features_(num_features) {}
  RUSH_ARG(int64_t, num_features);
  RUSH_ARG(double, eps) = 1e-5;
  RUSH_ARG(double, momentum) = 0.1;
  RUSH_ARG(bool, affine) = false;
  RUSH_ARG(bool, track_running_stats) = false;
};
using InstanceNorm1dOptions = InstanceNormOptions;
using InstanceNorm2dOptions = InstanceNormOptions;
using InstanceNorm3dOptions = InstanceNormOptions;

/// Named as in functional::local_response_norm's formula.
struct LocalResponseNormOptions {
  LocalResponseNormOptions(int64_t size) : size_(size) {}
  // How many channels enter.
  RUSH_ARG(int64_t, size);
  RUSH_ARG(double, alpha) = 1e-4;
  RUSH_ARG(double, beta) = 0.75;
  RUSH_ARG(double, k) = 1.0;
};

/// An odd number of channels.
using CrossMapLRN2dOptions = LocalResponseNormOptions;

/// normalized_shape: the sizes of the last dimensions. eps is added to the variance. elementwise_affine: with a learned
/// weight and, where `bias` is on, a bias.
struct LayerNormOptions {
  LayerNormOptions(std::vector<int64_t> normalized_shape) : normalized_shape_(std::move(normalized_shape)) {}
  RUSH_ARG(std::vector<int64_t>, normalized_shape);
  RUSH_ARG(double, eps) = 1e-5;
  RUSH_ARG(bool, elementwise_affine) = true;
  // As in Python; libtorch lacks it.
  RUSH_ARG(bool, bias) = true;
};

/// torch.nn.RMSNorm, which libtorch does not have.
struct RMSNormOptions {
  RMSNormOptions(std::vector<int64_t> normalized_shape) : normalized_shape_(std::move(normalized_shape)) {}
  RUSH_ARG(std::vector<int64_t>, normalized_shape);
  // Default: the machine epsilon of the input's dtype.
  RUSH_ARG(std::optional<double>, eps) = std::nullopt;
  RUSH_ARG(bool, elementwise_affine) = true;
};

/// num_channels in num_groups groups. eps is added to the variance. affine: with a learned weight and bias of each
/// channel.
struct GroupNormOptions {
  GroupNormOptions(int64_t num_groups, int64_t num_channels) : num_groups_(num_groups), num_channels_(num_channels) {}
  RUSH_ARG(int64_t, num_groups);
  RUSH_ARG(int64_t, num_channels);
  RUSH_ARG(double, eps) = 1e-5;
  RUSH_ARG(bool, affine) = true;
};

namespace functional {

/// As BatchNormOptions; weight and bias (C), or undefined. training: with the batch's own mean and variance.
struct BatchNormFuncOptions {
  RUSH_ARG(Tensor, weight);
  RUSH_ARG(Tensor, bias);
  RUSH_ARG(bool, training) = false;
  RUSH_ARG(double, momentum) = 0.1;
  RUSH_ARG(double, eps) = 1e-5;
};

/// As InstanceNormOptions; tensors (C), or undefined. use_input_stats: with each sample's own mean and variance.
struct InstanceNormFuncOptions {
  RUSH_ARG(Tensor, running_mean);
  RUSH_ARG(Tensor, running_var);
  RUSH_ARG(Tensor, weight);
  RUSH_ARG(Tensor, bias);
  RUSH_ARG(bool, use_input_stats) = true;
  RUSH_ARG(double, momentum) = 0.1;
  RUSH_ARG(double, eps) = 1e-5;
};

using LocalResponseNormFuncOptions = LocalResponseNormOptions;

/// As LayerNormOptions; weight and bias of normalized_shape, or undefined.
struct LayerNormFuncOptions {
  LayerNormFuncOptions(std::vector<int64_t> normalized_shape) : normalized_shape_(std::move(normalized_shape)) {}
  RUSH_ARG(std::vector<int64_t>, normalized_shape);
  RUSH_ARG(Tensor, weight);
  RUSH_ARG(Tensor, bias);
  RUSH_ARG(double, eps) = 1e-5;
};

/// As RMSNormOptions; weight of normalized_shape, or undefined.
struct RMSNormFuncOptions {
  RMSNormFuncOptions(std::vector<int64_t> normalized_shape) : normalized_shape_(std::move(normalized_shape)) {}
  RUSH_ARG(std::vector<int64_t>, normalized_shape);
  RUSH_ARG(Tensor, weight);
  RUSH_ARG(std::optional<double>, eps) = std::nullopt;
};

/// As GroupNormOptions; weight and bias (C), or undefined.
struct GroupNormFuncOptions {
  GroupNormFuncOptions(int64_t num_groups) : num_groups_(num_groups) {}
  RUSH_ARG(int64_t, num_groups);
  RUSH_ARG(Tensor, weight);
  RUSH_ARG(Tensor, bias);
  RUSH_ARG(double, eps) = 1e-5;
};

/// The p of the norm, its dimension, the least that it counts as, and a tensor that the result is written into.
struct NormalizeFuncOptions {
  RUSH_ARG(double, p) = 2.0;
  RUSH_ARG(int64_t, dim) = 1;
  RUSH_ARG(double, eps) = 1e-12;
  RUSH_ARG(std::optional<Tensor>, out) = std::nullopt;
};

}  // namespace functional
}  // namespace rush::nn
