#include "nn/functional/loss.h"

#include "core/ops/binary.h"
#include "core/ops/loss.h"
#include "nn/functional/optional_tensor.h"

namespace rush::nn::functional {

using enumtype::reduction_get_enum;

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

Tensor huber_loss(const Tensor& input, const Tensor& target, const HuberLossFuncOptions& o) {
  return rush::huber_loss(input, target, reduction_get_enum(o.reduction()), o.delta());
}

Tensor binary_cross_entropy(const Tensor& input, const Tensor& target, const BinaryCrossEntropyFuncOptions& o) {
  return rush::binary_cross_entropy(input, target, optional_tensor(o.weight()), reduction_get_enum(o.reduction()));
}

Tensor binary_cross_entropy_with_logits(const Tensor& input, const Tensor& target,
                                        const BinaryCrossEntropyWithLogitsFuncOptions& o) {
  return rush::binary_cross_entropy_with_logits(input, target, optional_tensor(o.weight()),
                                                optional_tensor(o.pos_weight()), reduction_get_enum(o.reduction()));
}

Tensor kl_div(const Tensor& input, const Tensor& target, const KLDivFuncOptions& o) {
  const Tensor loss = rush::kl_div(input, target, reduction_get_enum(o.reduction()), o.log_target());
  const bool batch_mean = enumtype::holds<enumtype::kBatchMean>(o.reduction());
  return batch_mean && input.dim() > 0 ? loss / input.size(0) : loss;
}

}  // namespace rush::nn::functional
