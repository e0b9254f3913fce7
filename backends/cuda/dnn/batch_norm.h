// Batch norm through cuDNN.
#pragma once
#include "core/ops/nn/norm.h"

namespace rush::cuda {

// kernels::batch_norm and kernels::batch_norm_backward (core/ops/nn/norm.h). False, with nothing done, where cuDNN is
// switched off or not built in or cannot compute this: statistics rounded to 16 bits, one position a channel, more than
// 2^31 elements, the gradient outside training.
bool dnn_batch_norm(const Tensor& output, const Tensor& mean, const Tensor& var, const Tensor& invstd,
                    const Tensor& input, const Tensor& weight, const Tensor& bias, double eps, bool rounded,
                    const kernels::ChannelLayout& layout);
bool dnn_batch_norm_backward(const Tensor& grad_input, const Tensor& grad_weight, const Tensor& grad_bias,
                             const Tensor& grad_output, const Tensor& input, const Tensor& mean, const Tensor& invstd,
                             const Tensor& weight, bool training, const kernels::ChannelLayout& layout);

}  // namespace rush::cuda
