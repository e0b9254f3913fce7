#pragma once
#include "nn/options/loss.h"

namespace rush::nn::functional {

// -log softmax(input)[target]: logits (N, C, ...) and classes (N, ...), or probabilities of the input's shape.
Tensor cross_entropy(const Tensor& input, const Tensor& target, const CrossEntropyFuncOptions& options = {});
// -input[target]: log-probabilities (N, C, ...) and classes (N, ...).
Tensor nll_loss(const Tensor& input, const Tensor& target, const NLLLossFuncOptions& options = {});
// (input - target)^2
Tensor mse_loss(const Tensor& input, const Tensor& target, const MSELossFuncOptions& options = {});
// |input - target|
Tensor l1_loss(const Tensor& input, const Tensor& target, const L1LossFuncOptions& options = {});
// Squared below beta, absolute above: d^2 / (2 beta) or |d| - beta / 2
Tensor smooth_l1_loss(const Tensor& input, const Tensor& target, const SmoothL1LossFuncOptions& options = {});
// Squared below delta, absolute above: d^2 / 2 or delta (|d| - delta / 2)
Tensor huber_loss(const Tensor& input, const Tensor& target, const HuberLossFuncOptions& options = {});
// -(target log(input) + (1 - target) log(1 - input)), the logarithms not below -100
Tensor binary_cross_entropy(const Tensor& input, const Tensor& target,
                            const BinaryCrossEntropyFuncOptions& options = {});
// The same on logits, which is more accurate than a sigmoid before it.
Tensor binary_cross_entropy_with_logits(const Tensor& input, const Tensor& target,
                                        const BinaryCrossEntropyWithLogitsFuncOptions& options = {});
// target (log(target) - input), where input (and target, if the option says so) holds logarithms.
Tensor kl_div(const Tensor& input, const Tensor& target, const KLDivFuncOptions& options = {});

}  // namespace rush::nn::functional
