#pragma once
#include "nn/options/loss.h"

namespace rush::nn::functional {

/// -log softmax(input)[target]: logits (N, C, ...) and classes (N, ...), or probabilities of the input's shape.
Tensor cross_entropy(const Tensor& input, const Tensor& target, const CrossEntropyFuncOptions& options = {});
/// -input[target]: log-probabilities (N, C, ...) and classes (N, ...).
Tensor nll_loss(const Tensor& input, const Tensor& target, const NLLLossFuncOptions& options = {});
/// (input - target)^2
Tensor mse_loss(const Tensor& input, const Tensor& target, const MSELossFuncOptions& options = {});
/// |input - target|
Tensor l1_loss(const Tensor& input, const Tensor& target, const L1LossFuncOptions& options = {});
/// Squared below beta, absolute above: d^2 / (2 beta) or |d| - beta / 2
Tensor smooth_l1_loss(const Tensor& input, const Tensor& target, const SmoothL1LossFuncOptions& options = {});
Tensor smooth_l1_loss(const Tensor& input, const Tensor& target, const SmoothL1LossFuncOptions& options, double beta);
/// Squared below delta, absolute above: d^2 / 2 or delta (|d| - delta / 2)
Tensor huber_loss(const Tensor& input, const Tensor& target, const HuberLossFuncOptions& options = {});
/// -(target log(input) + (1 - target) log(1 - input)), the logarithms not below -100
Tensor binary_cross_entropy(const Tensor& input, const Tensor& target,
                            const BinaryCrossEntropyFuncOptions& options = {});
/// The same on logits, which is more accurate than a sigmoid before it.
Tensor binary_cross_entropy_with_logits(const Tensor& input, const Tensor& target,
                                        const BinaryCrossEntropyWithLogitsFuncOptions& options = {});
/// target (log(target) - input), where input (and target, if the option says so) holds logarithms.
Tensor kl_div(const Tensor& input, const Tensor& target, const KLDivFuncOptions& options = {});
/// log(1 + e^(-target input)), targets being 1 or -1.
Tensor soft_margin_loss(const Tensor& input, const Tensor& target, const SoftMarginLossFuncOptions& options = {});
/// e^input - target input; or, of rates themselves, input - target log(input + eps)
Tensor poisson_nll_loss(const Tensor& input, const Tensor& target, const PoissonNLLLossFuncOptions& options = {});
/// ((input - target)^2 / var + log(var)) / 2, for the variance `var` of each element or, with a last dimension of 1 or
/// none, of each row. Throws ValueError for a negative variance.
Tensor gaussian_nll_loss(const Tensor& input, const Tensor& target, const Tensor& var,
                         const GaussianNLLLossFuncOptions& options = {});
/// -log of the probability of label sequences in all their alignments: see rush::ctc_loss. Lengths are int tensors or
/// lists.
Tensor ctc_loss(const Tensor& log_probs, const Tensor& targets, const Tensor& input_lengths,
                const Tensor& target_lengths, const CTCLossFuncOptions& options = {});
Tensor ctc_loss(const Tensor& log_probs, const Tensor& targets, IntArrayRef input_lengths, IntArrayRef target_lengths,
                const CTCLossFuncOptions& options = {});
/// input where the target is 1, max(0, margin - input) where it is -1.
Tensor hinge_embedding_loss(const Tensor& input, const Tensor& target,
                            const HingeEmbeddingLossFuncOptions& options = {});
/// Sum over the other classes c of max(0, margin - input_target + input_c)^p / C: (N, C) and classes (N).
Tensor multi_margin_loss(const Tensor& input, const Tensor& target, const MultiMarginLossFuncOptions& options = {});
/// The same with several classes for each sample, (N, C), of which those before the first -1 count.
Tensor multilabel_margin_loss(const Tensor& input, const Tensor& target,
                              const MultilabelMarginLossFuncOptions& options = {});
/// Binary cross-entropy on logits, mean over the classes: (N, C), (N, C) of 0 and 1.
Tensor multilabel_soft_margin_loss(const Tensor& input, const Tensor& target,
                                   const MultilabelSoftMarginLossFuncOptions& options = {});
/// max(0, margin - target (input1 - input2)), targets being 1 or -1.
Tensor margin_ranking_loss(const Tensor& input1, const Tensor& input2, const Tensor& target,
                           const MarginRankingLossFuncOptions& options = {});
/// 1 - cos(input1, input2) where the target is 1, max(0, cos - margin) where it is -1.
Tensor cosine_embedding_loss(const Tensor& input1, const Tensor& input2, const Tensor& target,
                             const CosineEmbeddingLossFuncOptions& options = {});
/// max(0, d(anchor, positive) - d(anchor, negative) + margin), d the p-norm of the difference, or any distance.
Tensor triplet_margin_loss(const Tensor& anchor, const Tensor& positive, const Tensor& negative,
                           const TripletMarginLossFuncOptions& options = {});
Tensor triplet_margin_with_distance_loss(const Tensor& anchor, const Tensor& positive, const Tensor& negative,
                                         const TripletMarginWithDistanceLossFuncOptions& options = {});

}  // namespace rush::nn::functional
