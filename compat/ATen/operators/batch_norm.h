// Batch normalisation in its steps, as programs write it that combine the statistics of several devices. An input is
// (N, C, spatial...), a statistic (C).
#pragma once
#include "ATen/operators/operator_names.h"

namespace rush {
inline namespace aten {

/// (mean, 1 / sqrt(variance + eps)).
std::tuple<Tensor, Tensor> batch_norm_stats(const Tensor& input, double eps);
/// (input - mean) invstd weight + bias.
Tensor batch_norm_elemt(const Tensor& input, const std::optional<Tensor>& weight, const std::optional<Tensor>& bias,
                        const Tensor& mean, const Tensor& invstd, double /*eps*/);
/// (mean, invstd) of all devices together, from each device's (devices, C) and its number of elements of a channel,
/// `counts` (devices). Updates the running statistics, the variance being the unbiased one.
std::tuple<Tensor, Tensor> batch_norm_gather_stats_with_counts(const Tensor& /*input*/, const Tensor& mean,
                                                               const Tensor& invstd,
                                                               const std::optional<Tensor>& running_mean,
                                                               const std::optional<Tensor>& running_var,
                                                               double momentum, double eps, const Tensor& counts);
std::tuple<Tensor, Tensor> batch_norm_gather_stats(const Tensor& input, const Tensor& mean, const Tensor& invstd,
                                                   const std::optional<Tensor>& running_mean,
                                                   const std::optional<Tensor>& running_var, double momentum,
                                                   double eps, int64_t count);
/// (mean, biased variance), with which the running statistics are updated.
std::tuple<Tensor, Tensor> batch_norm_update_stats(const Tensor& input, const std::optional<Tensor>& running_mean,
                                                   const std::optional<Tensor>& running_var, double momentum);

// ---- functions that libtorch has for one library, whose results are those of the general ones ----
std::tuple<Tensor, Tensor, Tensor, Tensor> cudnn_batch_norm(const Tensor& input, const Tensor& weight,
                                                            const std::optional<Tensor>& bias,
                                                            const std::optional<Tensor>& running_mean,
                                                            const std::optional<Tensor>& running_var, bool training,
                                                            double exponential_average_factor, double epsilon);
Tensor cudnn_convolution(const Tensor& self, const Tensor& weight, IntArrayRef padding, IntArrayRef stride,
                         IntArrayRef dilation, int64_t groups, bool /*benchmark*/, bool /*deterministic*/,
                         bool /*allow_tf32*/);
Tensor cudnn_convolution_transpose(const Tensor& self, const Tensor& weight, IntArrayRef padding,
                                   IntArrayRef output_padding, IntArrayRef stride, IntArrayRef dilation, int64_t groups,
                                   bool /*benchmark*/, bool /*deterministic*/, bool /*allow_tf32*/);
Tensor mkldnn_convolution(const Tensor& self, const Tensor& weight, const std::optional<Tensor>& bias,
                          IntArrayRef padding, IntArrayRef stride, IntArrayRef dilation, int64_t groups);
Tensor cudnn_convolution_relu(const Tensor& self, const Tensor& weight, const std::optional<Tensor>& bias,
                              IntArrayRef stride, IntArrayRef padding, IntArrayRef dilation, int64_t groups);
Tensor cudnn_convolution_add_relu(const Tensor& self, const Tensor& weight, const Tensor& z,
                                  const std::optional<Scalar>& alpha, const std::optional<Tensor>& bias,
                                  IntArrayRef stride, IntArrayRef padding, IntArrayRef dilation, int64_t groups);
Tensor cudnn_affine_grid_generator(const Tensor& theta, int64_t N, int64_t C, int64_t H, int64_t W);
Tensor cudnn_grid_sampler(const Tensor& self, const Tensor& grid);

}  // namespace aten
}  // namespace rush
