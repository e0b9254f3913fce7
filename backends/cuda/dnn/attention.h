// Attention through cuDNN.
#pragma once
#include "core/ops/nn/fused_attention.h"

namespace rush::cuda {

// kernels::cudnn_attention, its gradient and its refusal (core/ops/nn/fused_attention.h). The first two throw
// NotImplementedError for what the last refuses: where cuDNN is switched off or not built in, dtypes of other than 16
// bits, and what it has no plan for. Rows that see no key have a logsumexp of inf.
void dnn_attention(const Tensor& out, const Tensor& logsumexp, const AttentionProblem& problem);
void dnn_attention_backward(const std::array<Tensor, 3>& grads, const Tensor& grad, const Tensor& out,
                            const Tensor& logsumexp, const AttentionProblem& problem);
void dnn_attention_refusal(const char*& why, const AttentionProblem& problem, bool with_gradient);

}  // namespace rush::cuda
