// Losses: modules without parameters that compare a prediction with a target.
#pragma once
#include "nn/cloneable.h"
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
  X(KLDivLoss, kl_div)

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

}  // namespace rush::nn
