// Fronts of the losses of single elements and of pairs of vectors. Those of classes have a file of their own.
#include "core/ops/nn/loss.h"

#include "core/error/warning.h"
#include "core/ops/basic.h"
#include "core/ops/nn/loss_reduction.h"
#include "core/ops/nn/norm.h"
#include "core/ops/pointwise/activation.h"
#include "core/ops/pointwise/power.h"
#include "core/ops/register.h"

namespace rush {

namespace native {

using detail::reduce_loss;

template <kernels::LossKernel& kernel>
static Tensor elementwise_loss(const Tensor& self, const Tensor& target, double parameter) {
  const Tensor inputs[] = {self, target};
  auto it = TensorIterator::pointwise(kernel.name(), Tensor(), inputs, Promotion::Common);
  kernel(it.device_type(), it, parameter);
  return it.output();
}

// PyTorch's functional forms warn, too: a column against a row broadcasts to all pairs, whose loss is meaningless.
static Tensor warn_if_broadcast(const char* op, const Tensor& self, const Tensor& target, const Tensor& loss) {
  if (RUSH_UNLIKELY(self.sizes() != target.sizes())) {
    RUSH_WARN_ONCE_PER_CALLER(op, ": the target's shape ", target.sizes(), " is not the input's, ", self.sizes(),
                              "; both are broadcast to ", loss.sizes(),
                              ", which is seldom meant: reshape one of them, with squeeze, unsqueeze or view_as");
  }
  return loss;
}

template <kernels::LossBackwardKernel& kernel>
static Tensor elementwise_loss_backward(const Tensor& grad, const Tensor& self, const Tensor& target, int64_t reduction,
                                        double parameter) {
  detail::check_reduction(kernel.name(), reduction);
  const Tensor inputs[] = {self, target, grad};
  auto it = TensorIterator::pointwise(kernel.name(), Tensor(), inputs, Promotion::Common);
  const double norm = reduction == rush::Reduction::Mean ? 1 / static_cast<double>(it.numel()) : 1;
  kernel(it.device_type(), it, parameter, norm);
  return it.output();
}

static Tensor mse_loss(const Tensor& self, const Tensor& target, int64_t reduction) {
  detail::check_reduction("mse_loss", reduction);
  const Tensor loss = elementwise_loss<kernels::mse_loss>(self, target, 0);
  return reduce_loss(warn_if_broadcast("mse_loss", self, target, loss), reduction);
}

static Tensor mse_loss_backward(const Tensor& grad, const Tensor& self, const Tensor& target, int64_t reduction) {
  return elementwise_loss_backward<kernels::mse_loss_backward>(grad, self, target, reduction, 0);
}

static Tensor l1_loss(const Tensor& self, const Tensor& target, int64_t reduction) {
  detail::check_reduction("l1_loss", reduction);
  broadcast_shapes(self.sizes(), target.sizes(), "l1_loss");
  return reduce_loss(warn_if_broadcast("l1_loss", self, target, (self - target).abs()), reduction);
}

static Tensor smooth_l1_loss(const Tensor& self, const Tensor& target, int64_t reduction, double beta) {
  detail::check_reduction("smooth_l1_loss", reduction);
  RUSH_CHECK_VALUE(beta >= 0, "smooth_l1_loss: beta must not be negative, got ", beta);
  const Tensor loss = elementwise_loss<kernels::smooth_l1_loss>(self, target, beta);
  return reduce_loss(warn_if_broadcast("smooth_l1_loss", self, target, loss), reduction);
}

static Tensor huber_loss(const Tensor& self, const Tensor& target, int64_t reduction, double delta) {
  detail::check_reduction("huber_loss", reduction);
  RUSH_CHECK_VALUE(delta > 0, "huber_loss: delta must be positive, got ", delta);
  const Tensor loss = elementwise_loss<kernels::huber_loss>(self, target, delta);
  return reduce_loss(warn_if_broadcast("huber_loss", self, target, loss), reduction);
}

static Tensor weighted(const Tensor& loss, const OptionalTensor& weight) {
  return given(weight) ? loss * *weight : loss;
}

static void check_same_sizes(const char* op, const Tensor& self, const Tensor& target) {
  RUSH_CHECK_VALUE(self.sizes() == target.sizes(), op, ": expected a target of the input's shape ", self.sizes(),
                   ", got ", target.sizes());
}

static Tensor binary_cross_entropy(const Tensor& self, const Tensor& target, const OptionalTensor& weight,
                                   int64_t reduction) {
  detail::check_reduction("binary_cross_entropy", reduction);
  check_same_sizes("binary_cross_entropy", self, target);
  const Tensor loss = elementwise_loss<kernels::binary_cross_entropy>(self, target, 0);
  return reduce_loss(weighted(loss, weight), reduction);
}

static Tensor binary_cross_entropy_backward(const Tensor& grad, const Tensor& self, const Tensor& target,
                                            const OptionalTensor& weight, int64_t reduction) {
  check_same_sizes("binary_cross_entropy_backward", self, target);
  const auto run = elementwise_loss_backward<kernels::binary_cross_entropy_backward>;
  return weighted(run(grad, self, target, reduction, 0), weight);
}

static Tensor soft_margin_loss(const Tensor& self, const Tensor& target, int64_t reduction) {
  detail::check_reduction("soft_margin_loss", reduction);
  return reduce_loss(softplus(-(self * target)), reduction);
}

// With s = sigmoid(x): -log s = softplus(-x) and -log(1 - s) = x - log s.
static Tensor binary_cross_entropy_with_logits(const Tensor& self, const Tensor& target, const OptionalTensor& weight,
                                               const OptionalTensor& pos_weight, int64_t reduction) {
  detail::check_reduction("binary_cross_entropy_with_logits", reduction);
  const Tensor minus_log = softplus(-self);
  const bool given = pos_weight && pos_weight->defined();
  const Tensor positive = given ? ((*pos_weight - 1) * target + 1) * minus_log : minus_log;
  const Tensor loss = weighted((1 - target) * self + positive, weight);
  return reduce_loss(warn_if_broadcast("binary_cross_entropy_with_logits", self, target, loss), reduction);
}

static Tensor kl_div(const Tensor& self, const Tensor& target, int64_t reduction, bool log_target) {
  detail::check_reduction("kl_div", reduction);
  RUSH_CHECK_TYPE(!self.is_complex() && !target.is_complex(), "kl_div: not defined for complex numbers");
  return reduce_loss(log_target ? target.exp() * (target - self) : xlogy(target, target) - target * self, reduction);
}

static Tensor poisson_nll_loss(const Tensor& input, const Tensor& target, bool log_input, bool full, double eps,
                               int64_t reduction) {
  detail::check_reduction("poisson_nll_loss", reduction);
  Tensor loss = log_input ? input.exp() - target * input : input - target * (input + eps).log();
  if (full) {
    constexpr double kTwoPi = 6.283185307179586;
    const Tensor stirling = target * target.log() - target + (target * kTwoPi).log() * 0.5;
    loss = loss + stirling.masked_fill(target.le(1), 0);
  }
  return reduce_loss(loss, reduction);
}

static Tensor margin_ranking_loss(const Tensor& input1, const Tensor& input2, const Tensor& target, double margin,
                                  int64_t reduction) {
  detail::check_reduction("margin_ranking_loss", reduction);
  RUSH_CHECK_VALUE(input1.dim() == input2.dim() && input1.dim() == target.dim(),
                   "margin_ranking_loss: inputs and target need as many dimensions, got shapes ", input1.sizes(), ", ",
                   input2.sizes(), " and ", target.sizes());
  return reduce_loss((-target * (input1 - input2) + margin).clamp_min(0), reduction);
}

static Tensor hinge_embedding_loss(const Tensor& self, const Tensor& target, double margin, int64_t reduction) {
  detail::check_reduction("hinge_embedding_loss", reduction);
  const Tensor below_margin = (margin - self).clamp_min(0).masked_fill(target.eq(1), 0);
  return reduce_loss(below_margin + self.masked_fill(target.eq(-1), 0), reduction);
}

static Tensor cosine_embedding_loss(const Tensor& input1, const Tensor& input2, const Tensor& target, double margin,
                                    int64_t reduction) {
  const char* op = "cosine_embedding_loss";
  detail::check_reduction(op, reduction);
  const int64_t dim = target.dim();
  RUSH_CHECK_VALUE(dim <= 1, op, ": expected a target of 0 or 1 dimensions, got shape ", target.sizes());
  RUSH_CHECK_VALUE(input1.dim() == dim + 1 && input2.dim() == dim + 1, op, ": a target of shape ", target.sizes(),
                   " needs inputs of ", dim + 1, " dimensions, got shapes ", input1.sizes(), " and ", input2.sizes());
  constexpr double kEpsilon = 1e-12;
  const Tensor square1 = (input1 * input1).sum(dim) + kEpsilon, square2 = (input2 * input2).sum(dim) + kEpsilon;
  const Tensor cosine = (input1 * input2).sum(dim) / (square1 * square2).sqrt();
  const Tensor alike = (1 - cosine).masked_fill(target.ne(1), 0);
  const Tensor unlike = (cosine - margin).clamp_min(0).masked_fill(target.ne(-1), 0);
  return reduce_loss(alike + unlike, reduction);
}

static Tensor triplet_margin_loss(const Tensor& anchor, const Tensor& positive, const Tensor& negative, double margin,
                                  double p, double eps, bool swap, int64_t reduction) {
  const char* op = "triplet_margin_loss";
  detail::check_reduction(op, reduction);
  RUSH_CHECK_VALUE(anchor.dim() == positive.dim() && anchor.dim() == negative.dim(), op,
                   ": anchor, positive and negative need as many dimensions, got shapes ", anchor.sizes(), ", ",
                   positive.sizes(), " and ", negative.sizes());
  const Tensor near = ops::pairwise_distance(anchor, positive, p, eps, false);
  Tensor far = ops::pairwise_distance(anchor, negative, p, eps, false);
  if (swap) far = minimum(far, ops::pairwise_distance(positive, negative, p, eps, false));
  return reduce_loss((near - far + margin).clamp_min(0), reduction);
}

}  // namespace native

Tensor binary_cross_entropy(const Tensor& self, const Tensor& target, const OptionalTensor& weight, int64_t reduction) {
  // PyTorch's operator drops dimensions of size one.
  const bool differs = self.sizes() != target.sizes() && self.squeeze().sizes() == target.squeeze().sizes();
  return ops::binary_cross_entropy(self, differs ? target.reshape(self.sizes()) : target, weight, reduction);
}

void detail::check_reduction(const char* op, int64_t reduction) {
  RUSH_CHECK_VALUE(reduction >= 0 && reduction < rush::Reduction::END, op,
                   ": reduction must be 0 (none), 1 (mean) or 2 (sum), got ", reduction);
}

Tensor detail::reduce_loss(const Tensor& loss, int64_t reduction) {
  if (reduction == rush::Reduction::Mean) return loss.mean();
  return reduction == rush::Reduction::Sum ? loss.sum() : loss;
}

void register_loss_ops(Registry& r) {
  r.native(ops::mse_loss, native::mse_loss);
  r.native(ops::mse_loss_backward, native::mse_loss_backward);
  r.composite(ops::l1_loss, native::l1_loss);
  r.native(ops::smooth_l1_loss, native::smooth_l1_loss);
  r.native(ops::smooth_l1_loss_backward, native::elementwise_loss_backward<kernels::smooth_l1_loss_backward>);
  r.native(ops::huber_loss, native::huber_loss);
  r.native(ops::huber_loss_backward, native::elementwise_loss_backward<kernels::huber_loss_backward>);
  r.native(ops::binary_cross_entropy, native::binary_cross_entropy);
  r.native(ops::binary_cross_entropy_backward, native::binary_cross_entropy_backward);
  r.composite(ops::soft_margin_loss, native::soft_margin_loss);
  r.composite(ops::binary_cross_entropy_with_logits, native::binary_cross_entropy_with_logits);
  r.composite(ops::kl_div, native::kl_div);
  r.composite(ops::poisson_nll_loss, native::poisson_nll_loss);
  r.composite(ops::margin_ranking_loss, native::margin_ranking_loss);
  r.composite(ops::hinge_embedding_loss, native::hinge_embedding_loss);
  r.composite(ops::cosine_embedding_loss, native::cosine_embedding_loss);
  r.composite(ops::triplet_margin_loss, native::triplet_margin_loss);
}

}  // namespace rush
