// Losses: modules without parameters that compare a prediction with a target.
#pragma once
#include "nn/modules/options_module.h"
#include "nn/options/loss.h"

namespace rush::nn {

// Name, function.
#define RUSH_FORALL_LOSSES(X)                            \
  X(CrossEntropyLoss, cross_entropy)                     \
  X(NLLLoss, nll_loss)                                   \
  X(MSELoss, mse_loss)                                   \
  X(L1Loss, l1_loss)                                     \
  X(SmoothL1Loss, smooth_l1_loss)                        \
  X(HuberLoss, huber_loss)                               \
  X(BCELoss, binary_cross_entropy)                       \
  X(BCEWithLogitsLoss, binary_cross_entropy_with_logits) \
  X(KLDivLoss, kl_div)                                   \
  X(SoftMarginLoss, soft_margin_loss)                    \
  X(PoissonNLLLoss, poisson_nll_loss)                    \
  X(HingeEmbeddingLoss, hinge_embedding_loss)            \
  X(MultiMarginLoss, multi_margin_loss)                  \
  X(MultiLabelMarginLoss, multilabel_margin_loss)        \
  X(MultiLabelSoftMarginLoss, multilabel_soft_margin_loss)

// Losses of three tensors.
#define RUSH_FORALL_TRIPLE_LOSSES(X)            \
  X(GaussianNLLLoss, gaussian_nll_loss)         \
  X(MarginRankingLoss, margin_ranking_loss)     \
  X(CosineEmbeddingLoss, cosine_embedding_loss) \
  X(TripletMarginLoss, triplet_margin_loss)     \
  X(TripletMarginWithDistanceLoss, triplet_margin_with_distance_loss)

// torch.nn.CrossEntropyLoss and so on: forward(input, target) is the function of nn::functional. A weight that the
// options hold is a buffer, so that it moves with the module.
#define RUSH_LOSS_MODULE(Name, function)                                                               \
  class Name##Impl : public Cloneable<Name##Impl> {                                                    \
   public:                                                                                             \
    explicit Name##Impl(const Name##Options& options = {}) : options(options) { Name##Impl::reset(); } \
    void reset() override;                                                                             \
    void pretty_print(std::ostream& stream) const override;                                            \
    Tensor forward(const Tensor& input, const Tensor& target);                                         \
                                                                                                       \
    Name##Options options;                                                                             \
  };                                                                                                   \
  RUSH_MODULE(Name);
RUSH_FORALL_LOSSES(RUSH_LOSS_MODULE)
#undef RUSH_LOSS_MODULE

// forward(input1, input2, target), forward(anchor, positive, negative) or forward(input, target, variance).
#define RUSH_LOSS_MODULE(Name, function) \
  RUSH_OPTIONS_MODULE_WITH(Name, Tensor forward(const Tensor& first, const Tensor& second, const Tensor& third);)
RUSH_FORALL_TRIPLE_LOSSES(RUSH_LOSS_MODULE)
#undef RUSH_LOSS_MODULE

/// torch.nn.CTCLoss: see functional::ctc_loss.
RUSH_OPTIONS_MODULE_WITH(CTCLoss, Tensor forward(const Tensor& log_probs, const Tensor& targets,
                                                 const Tensor& input_lengths, const Tensor& target_lengths);)

}  // namespace rush::nn
