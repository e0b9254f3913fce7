// Batch norm where the channels are innermost, as in channels_last: Note [Batch norm of rows].
#pragma once
#include "core/ops/nn/norm.h"

namespace rush::cuda {

// Whether the kernels below take tensors like these: float or 16-bit rows whose accesses of 16 bytes are aligned. An
// undefined tensor is any.
bool are_channel_rows(const kernels::ChannelLayout& layout, std::initializer_list<Tensor> tensors);

// output = (input - mean) * invstd * weight + bias, or relu of it. A residual is added before the relu, and needs one.
void affine_rows(const Tensor& output, const Tensor& input, const Tensor& residual, const Tensor& mean,
                 const Tensor& invstd, const Tensor& weight, const Tensor& bias, bool relu,
                 const kernels::ChannelLayout& layout);

// The statistics as kernels::batch_norm returns them.
void row_statistics(const Tensor& mean, const Tensor& var, const Tensor& invstd, const Tensor& input, double eps,
                    bool rounded, const kernels::ChannelLayout& layout);

// What a relu behind the batch norm lets through, for the backward pass.
struct ReluGate {
  enum Kind : uint8_t { None, Recomputed, ByOutput } kind = None;
  Tensor bias;    // Recomputed: what the forward pass added; the output was relu(batch norm)
  Tensor output;  // ByOutput
  Tensor gated;   // ByOutput: receives what the gate lets through of the output's gradient
};

// As kernels::batch_norm_backward, of the gradient that the gate lets through.
void batch_norm_backward_rows(const Tensor& grad_input, const Tensor& grad_weight, const Tensor& grad_bias,
                              const Tensor& grad_output, const Tensor& input, const Tensor& mean, const Tensor& invstd,
                              const Tensor& weight, bool training, const ReluGate& gate,
                              const kernels::ChannelLayout& layout);

}  // namespace rush::cuda
