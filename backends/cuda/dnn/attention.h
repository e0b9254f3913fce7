// Attention through cuDNN.
#pragma once
#include "core/ops/nn/fused_attention.h"

namespace rush::cuda {

// kernels::cudnn_attention, its gradient and its refusal (core/ops/nn/fused_attention.h). The first two throw
// NotImplementedError for what the last refuses: if cuDNN is switched off or not built in, for dtypes of other than 16
// bits, and for what it has no plan for. Rows whose keys are all hidden have an LSE of +inf.
void dnn_attention(const Tensor& out, const Tensor& logsumexp, const AttentionProblem& problem);
void dnn_attention_backward(const std::array<Tensor, 3>& grads, const Tensor& grad, const Tensor& out,
                            const Tensor& logsumexp, const AttentionProblem& problem);
void dnn_attention_refusal(const char*& why, const AttentionProblem& problem, bool with_gradient);

}  // namespace rush::cuda
