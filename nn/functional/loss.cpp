#include "nn/functional/loss.h"

#include <cmath>
#include <numbers>

#include "autograd/grad_mode.h"
#include "core/error/warning.h"
#include "core/ops/nn/ctc_loss.h"
#include "core/ops/nn/loss.h"
#include "core/ops/nn/loss_reduction.h"
#include "core/ops/nn/norm.h"
#include "core/ops/pointwise/binary.h"
#include "core/ops/pointwise/compare.h"
#include "nn/functional/optional_tensor.h"

namespace rush::nn::functional {

using enumtype::reduction_get_enum;
using rush::detail::reduce_loss;

Tensor cross_entropy(const Tensor& input, const Tensor& target, const CrossEntropyFuncOptions& o) {
  return cross_entropy_loss(input, target, optional_tensor(o.weight()), reduction_get_enum(o.reduction()),
                            o.ignore_index(), o.label_smoothing());
}

Tensor nll_loss(const Tensor& input, const Tensor& target, const NLLLossFuncOptions& o) {
  return nll_loss_nd(input, target, optional_tensor(o.weight()), reduction_get_enum(o.reduction()), o.ignore_index());
}

Tensor mse_loss(const Tensor& input, const Tensor& target, const MSELossFuncOptions& o) {
  return rush::mse_loss(input, target, reduction_get_enum(o.reduction()));
}

Tensor l1_loss(const Tensor& input, const Tensor& target, const L1LossFuncOptions& o) {
  return rush::l1_loss(input, target, reduction_get_enum(o.reduction()));
}

Tensor smooth_l1_loss(const Tensor& input, const Tensor& target, const SmoothL1LossFuncOptions& o) {
  return rush::smooth_l1_loss(input, target, reduction_get_enum(o.reduction()), o.beta().value_or(1.0));
}

Tensor smooth_l1_loss(const Tensor& input, const Tensor& target, const SmoothL1LossFuncOptions& o, double beta) {
  RUSH_CHECK(!o.beta(), "smooth_l1_loss: expected beta not to be provided in 'options', but got ", *o.beta());
  return rush::smooth_l1_loss(input, target, reduction_get_enum(o.reduction()), beta);
}

Tensor huber_loss(const Tensor& input, const Tensor& target, const HuberLossFuncOptions& o) {
  return rush::huber_loss(input, target, reduction_get_enum(o.reduction()), o.delta());
}

Tensor binary_cross_entropy(const Tensor& input, const Tensor& target, const BinaryCrossEntropyFuncOptions& o) {
  RUSH_CHECK_VALUE(input.sizes() == target.sizes(), "binary_cross_entropy: expected a target of the input's shape ",
                   input.sizes(), ", got ", target.sizes());
  return rush::binary_cross_entropy(input, target, optional_tensor(o.weight()), reduction_get_enum(o.reduction()));
}

Tensor binary_cross_entropy_with_logits(const Tensor& input, const Tensor& target,
                                        const BinaryCrossEntropyWithLogitsFuncOptions& o) {
  RUSH_CHECK_VALUE(input.sizes() == target.sizes(),
                   "binary_cross_entropy_with_logits: expected a target of the input's shape ", input.sizes(), ", got ",
                   target.sizes());
  return rush::binary_cross_entropy_with_logits(input, target, optional_tensor(o.weight()),
                                                optional_tensor(o.pos_weight()), reduction_get_enum(o.reduction()));
}

Tensor kl_div(const Tensor& input, const Tensor& target, const KLDivFuncOptions& o) {
  if (enumtype::holds<enumtype::kMean>(o.reduction())) {
    RUSH_WARN_ONCE_PER_CALLER(
        "kl_div: the reduction 'mean' divides by the number of elements, which the divergence does not; kBatchMean "
        "divides by the batch size alone");
  }
  const Tensor loss = rush::kl_div(input, target, reduction_get_enum(o.reduction()), o.log_target());
  const bool batch_mean = enumtype::holds<enumtype::kBatchMean>(o.reduction());
  return batch_mean && input.dim() > 0 ? loss / input.size(0) : loss;
}

Tensor soft_margin_loss(const Tensor& input, const Tensor& target, const SoftMarginLossFuncOptions& o) {
  return rush::soft_margin_loss(input, target, reduction_get_enum(o.reduction()));
}

Tensor poisson_nll_loss(const Tensor& input, const Tensor& target, const PoissonNLLLossFuncOptions& o) {
  return rush::poisson_nll_loss(input, target, o.log_input(), o.full(), o.eps(), reduction_get_enum(o.reduction()));
}

Tensor hinge_embedding_loss(const Tensor& input, const Tensor& target, const HingeEmbeddingLossFuncOptions& o) {
  return rush::hinge_embedding_loss(input, target, o.margin(), reduction_get_enum(o.reduction()));
}

Tensor multi_margin_loss(const Tensor& input, const Tensor& target, const MultiMarginLossFuncOptions& o) {
  return rush::multi_margin_loss(input, target, o.p(), o.margin(), optional_tensor(o.weight()),
                                 reduction_get_enum(o.reduction()));
}

Tensor multilabel_margin_loss(const Tensor& input, const Tensor& target, const MultilabelMarginLossFuncOptions& o) {
  return rush::multilabel_margin_loss(input, target, reduction_get_enum(o.reduction()));
}

// The variances, with a dimension for each of the input's.
static Tensor checked_variance(const Tensor& input, const Tensor& var) {
  RUSH_CHECK_VALUE(!var.lt(0).any().item<bool>(), "gaussian_nll_loss: a variance is negative");
  if (var.sizes() == input.sizes()) return var;
  if (input.dim() > 0 && var.sizes() == input.sizes().slice(0, input.sizes().size() - 1)) return var.unsqueeze(-1);
  int64_t wider = 0;  // dimensions in which one variance counts for all
  bool fits = var.dim() == input.dim();
  for (int64_t d = 0; fits && d < input.dim(); ++d) {
    wider += var.size(d) != input.size(d);
    fits = var.size(d) == input.size(d) || var.size(d) == 1;
  }
  RUSH_CHECK_VALUE(fits && wider == 1, "gaussian_nll_loss: variances of shape ", var.sizes(),
                   " do not go with an input of shape ", input.sizes());
  return var;
}

Tensor gaussian_nll_loss(const Tensor& input, const Tensor& target, const Tensor& var,
                         const GaussianNLLLossFuncOptions& o) {
  Tensor variance = checked_variance(input, var).clone();
  {
    // As in PyTorch, clamping small variances does not change the gradient.
    const NoGradGuard no_grad;
    variance.clamp_min_(o.eps());
  }
  Tensor losses = (variance.log() + (input - target).square() / variance) * 0.5;
  if (o.full()) losses = losses + 0.5 * std::log(2 * std::numbers::pi);
  return reduce_loss(losses, reduction_get_enum(o.reduction()));
}

Tensor ctc_loss(const Tensor& log_probs, const Tensor& targets, const Tensor& input_lengths,
                const Tensor& target_lengths, const CTCLossFuncOptions& o) {
  return rush::ctc_loss(log_probs, targets, input_lengths, target_lengths, o.blank(), reduction_get_enum(o.reduction()),
                        o.zero_infinity());
}
Tensor ctc_loss(const Tensor& log_probs, const Tensor& targets, IntArrayRef input_lengths, IntArrayRef target_lengths,
                const CTCLossFuncOptions& o) {
  return rush::ctc_loss(log_probs, targets, input_lengths, target_lengths, o.blank(), reduction_get_enum(o.reduction()),
                        o.zero_infinity());
}

Tensor multilabel_soft_margin_loss(const Tensor& input, const Tensor& target,
                                   const MultilabelSoftMarginLossFuncOptions& o) {
  RUSH_CHECK_VALUE(input.dim() > 0 && input.sizes() == target.sizes(),
                   "multilabel_soft_margin_loss: expected input and target of one shape, got ", input.sizes(), " and ",
                   target.sizes());
  const Tensor losses =
      rush::binary_cross_entropy_with_logits(input, target, optional_tensor(o.weight()), {}, Reduction::None);
  return reduce_loss(losses.mean({-1}), reduction_get_enum(o.reduction()));
}

Tensor margin_ranking_loss(const Tensor& input1, const Tensor& input2, const Tensor& target,
                           const MarginRankingLossFuncOptions& o) {
  return rush::margin_ranking_loss(input1, input2, target, o.margin(), reduction_get_enum(o.reduction()));
}

Tensor cosine_embedding_loss(const Tensor& input1, const Tensor& input2, const Tensor& target,
                             const CosineEmbeddingLossFuncOptions& o) {
  return rush::cosine_embedding_loss(input1, input2, target, o.margin(), reduction_get_enum(o.reduction()));
}

Tensor triplet_margin_loss(const Tensor& anchor, const Tensor& positive, const Tensor& negative,
                           const TripletMarginLossFuncOptions& o) {
  return rush::triplet_margin_loss(anchor, positive, negative, o.margin(), o.p(), o.eps(), o.swap(),
                                   reduction_get_enum(o.reduction()));
}

Tensor triplet_margin_with_distance_loss(const Tensor& anchor, const Tensor& positive, const Tensor& negative,
                                         const TripletMarginWithDistanceLossFuncOptions& o) {
  const auto distance = [&](const Tensor& a, const Tensor& b) {
    return o.distance_function() ? (*o.distance_function())(a, b) : rush::pairwise_distance(a, b);
  };
  Tensor apart = distance(anchor, negative);
  if (o.swap()) apart = minimum(apart, distance(positive, negative));
  return reduce_loss((distance(anchor, positive) - apart + o.margin()).clamp_min(0), reduction_get_enum(o.reduction()));
}

}  // namespace rush::nn::functional
