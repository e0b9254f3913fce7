#include "core/ops/nn/loss.h"

#include "autograd/derivatives/register.h"
#include "autograd/grad_mode.h"
#include "core/ops/basic.h"
#include "core/ops/nn/softmax.h"

namespace rush {

namespace {

// What one element's gradient is multiplied by on account of the reduction.
double mean_factor(int64_t reduction, const Tensor& self, const Tensor& target) {
  if (reduction != Reduction::Mean) return 1;
  return 1 / static_cast<double>(checked_numel(broadcast_shapes(self.sizes(), target.sizes(), "loss")));
}

// A loss l(d) of the difference d of input and target. Rule gives the backward operator and l''.
template <class Rule, class... Parameters>
struct DifferenceLossNode : Node {
  Saved self, target;
  int64_t reduction = Reduction::Mean;
  std::tuple<Parameters...> parameters;
  RUSH_SAVED(self, target)
  auto saved_arguments() { return std::tuple_cat(std::tie(self, target, reduction), saved_each(parameters)); }
  Tensors apply(const Tensors& g) override {
    const Tensor dx = std::apply(
        [&](auto... p) { return Rule::backward(g[0], self.get(), target.get(), reduction, p...); }, parameters);
    return {dx, needs(1) ? -dx : Tensor()};
  }
};

// Of g l'(d) norm, which is linear in g: with respect to g, x and y.
template <class Rule, class... Parameters>
struct DifferenceLossBackwardNode : Node {
  Saved grad, self, target;
  int64_t reduction = Reduction::Mean;
  std::tuple<Parameters...> parameters;
  RUSH_SAVED(grad, self, target)
  auto saved_arguments() { return std::tuple_cat(std::tie(grad, self, target, reduction), saved_each(parameters)); }
  Tensors apply(const Tensors& g) override {
    const Tensor x = self.get(), y = target.get();
    const auto backward = [&](auto... p) { return Rule::backward(g[0], x, y, reduction, p...); };
    const auto curvature = [&](auto... p) { return Rule::curvature(g[0] * grad.get(), x - y, p...); };
    const Tensor dg = needs(0) ? std::apply(backward, parameters) : Tensor();
    if (!needs(1) && !needs(2)) return {dg};
    const Tensor dx = std::apply(curvature, parameters) * mean_factor(reduction, x, y);
    return {dg, dx, -dx};
  }
};

struct MseRule {  // l' = 2 d, l'' = 2
  static constexpr auto& backward = ops::mse_loss_backward;
  static Tensor curvature(const Tensor& g, const Tensor&) { return g * 2; }
};
struct SmoothL1Rule {  // l' = d / beta within beta, else the sign of d
  static constexpr auto& backward = ops::smooth_l1_loss_backward;
  static Tensor curvature(const Tensor& g, const Tensor& d, double beta) {
    const Tensor outside = d.abs().ge(beta);
    return (beta > 0 ? g / beta : g).masked_fill(outside, 0);
  }
};
struct HuberRule {  // l' = d within delta, else delta times the sign of d
  static constexpr auto& backward = ops::huber_loss_backward;
  static Tensor curvature(const Tensor& g, const Tensor& d, double delta) {
    return g.masked_fill(d.abs().gt(delta), 0);
  }
};

struct MseLossBackward final : DifferenceLossNode<MseRule> {};
struct MseLossBackwardBackward final : DifferenceLossBackwardNode<MseRule> {};
struct SmoothL1LossBackward final : DifferenceLossNode<SmoothL1Rule, double> {};
struct SmoothL1LossBackwardBackward final : DifferenceLossBackwardNode<SmoothL1Rule, double> {};
struct HuberLossBackward final : DifferenceLossNode<HuberRule, double> {};
struct HuberLossBackwardBackward final : DifferenceLossBackwardNode<HuberRule, double> {};

struct BinaryCrossEntropyBackward final : Node {
  static constexpr std::array<size_t, 1> kConstants = {2};
  Saved self, target, weight;
  int64_t reduction = Reduction::Mean;
  RUSH_SAVED(self, target, weight)
  auto saved_arguments() { return std::tie(self, target, weight, reduction); }
  Tensors apply(const Tensors& g) override {
    const Tensor x = self.get(), y = target.get(), w = weight.get();
    const Tensor dx = needs(0) ? ops::binary_cross_entropy_backward(g[0], x, y, w, reduction) : Tensor();
    Tensor dy;
    if (needs(1)) {  // dl/dy = log(1 - x) - log x
      dy = g[0] * ((1 - x).log() - x.log()) * mean_factor(reduction, x, y);
      if (w.defined()) dy = dy * w;
    }
    return {dx, dy};
  }
};

// Of g (x - y) / (x - x^2) w: with s = x - x^2, the derivative by x is (x^2 - 2 x y + y) / s^2 and that by y is -1 / s.
struct BinaryCrossEntropyBackwardBackward final : Node {
  Saved grad, self, target, weight;
  int64_t reduction = Reduction::Mean;
  RUSH_SAVED(grad, self, target, weight)
  auto saved_arguments() { return std::tie(grad, self, target, weight, reduction); }
  Tensors apply(const Tensors& g) override {
    const Tensor x = self.get(), y = target.get(), w = weight.get();
    const Tensor dg = needs(0) ? ops::binary_cross_entropy_backward(g[0], x, y, w, reduction) : Tensor();
    if (!needs(1) && !needs(2)) return {dg};
    const Tensor spread = (x - x * x).clamp_min(1e-12);
    Tensor scale = g[0] * grad.get() * mean_factor(reduction, x, y) / spread;
    if (w.defined()) scale = scale * w;
    return {dg, scale * (x * x - x * y * 2 + y) / spread, -scale};
  }
};

template <ClassLossBackwardOp& backward>
struct NllLossNode : Node {
  static constexpr size_t kDifferentiable = 1;
  static constexpr std::array<size_t, 1> kConstants = {2};
  Saved self, target, weight, total_weight;
  int64_t reduction = Reduction::Mean, ignore_index = -100;
  RUSH_SAVED(self, target, weight, total_weight)
  auto saved_arguments() { return std::tie(self, target, weight, reduction, ignore_index); }
  auto saved_results() { return std::tie(std::ignore, total_weight); }
  Tensors apply(const Tensors& g) override {
    return {backward(g[0], self.get(), target.get(), weight.get(), reduction, ignore_index, total_weight.get())};
  }
};
struct NllLossBackward final : NllLossNode<ops::nll_loss_backward> {};
struct NllLoss2dBackward final : NllLossNode<ops::nll_loss2d_backward> {};

// The backward pass writes -w[y] g (over the total weight) at the targets, whatever the input: its derivative by g
// reads there, as the loss itself does.
template <ClassLossOp& forward>
struct NllLossBackwardNode : Node {
  Saved target, weight;
  int64_t reduction = Reduction::Mean, ignore_index = -100;
  RUSH_SAVED(target, weight)
  auto saved_arguments() {
    return std::tie(std::ignore, std::ignore, target, weight, reduction, ignore_index, std::ignore);
  }
  Tensors apply(const Tensors& g) override {
    return {forward(g[0], target.get(), weight.get(), reduction, ignore_index)};
  }
};
struct NllLossBackwardBackward final : NllLossBackwardNode<ops::nll_loss> {};
struct NllLoss2dBackwardBackward final : NllLossBackwardNode<ops::nll_loss2d> {};

// See Note [Fused cross entropy], and Note [Fused backward passes] for the second derivative.
struct CrossEntropyBackward final : Node {
  static constexpr size_t kDifferentiable = 1;
  static constexpr std::array<size_t, 1> kConstants = {2};
  Saved self, target, weight, logsumexp, total_weight;
  int64_t reduction = Reduction::Mean, ignore_index = -100;
  double label_smoothing = 0;
  RUSH_SAVED(self, target, weight, logsumexp, total_weight)
  auto saved_arguments() {
    return std::tie(self, target, weight, reduction, ignore_index, label_smoothing, std::ignore);
  }
  auto saved_results() { return std::tie(std::ignore, logsumexp, total_weight); }
  Tensors apply(const Tensors& g) override {
    const Tensor x = self.get(), y = target.get(), w = weight.get();
    if (!GradMode::is_enabled()) {
      return {ops::cross_entropy_backward(g[0], x, y, w, reduction, ignore_index, label_smoothing, logsumexp.get(),
                                          total_weight.get())};
    }
    const Tensor a = class_shares(x.detach(), y, w);
    Tensor scale = g[0].to(x.scalar_type());
    if (reduction == Reduction::Mean) {
      // The mean over no target is NaN, and has the gradient 0.
      const Tensor all_ignored = y.eq(ignore_index).all();
      scale = scale / total_weight.get().detach().masked_fill(all_ignored, 1);
    }
    if (reduction == Reduction::None && x.dim() > 1) scale = scale.unsqueeze(-1);
    return {scale * (softmax(x, -1) * a.sum(-1, true) - a)};
  }

 private:
  // The weights a_c of the Note, in the shape of the scores: constants.
  Tensor class_shares(const Tensor& x, const Tensor& y, const Tensor& w) const {
    const NoGradGuard constants;
    const Tensor one = ones({}, x.options());
    const Tensor own = -ops::nll_loss_backward(one, x, y, w, static_cast<int64_t>(Reduction::Sum), ignore_index, one);
    if (label_smoothing == 0) return own;
    Tensor spread = full_like(x, label_smoothing / static_cast<double>(x.size(-1)));
    if (w.defined()) spread = spread * w;
    const Tensor ignored = x.dim() > 1 ? y.eq(ignore_index).unsqueeze(-1) : y.eq(ignore_index);
    return own * (1 - label_smoothing) + spread.masked_fill(ignored, 0);
  }
};

}  // namespace

void register_loss_derivatives(Registry& r) {
  derive<ops::mse_loss, MseLossBackward>(r);
  derive<ops::mse_loss_backward, MseLossBackwardBackward>(r);
  derive<ops::smooth_l1_loss, SmoothL1LossBackward>(r);
  derive<ops::smooth_l1_loss_backward, SmoothL1LossBackwardBackward>(r);
  derive<ops::huber_loss, HuberLossBackward>(r);
  derive<ops::huber_loss_backward, HuberLossBackwardBackward>(r);
  derive<ops::binary_cross_entropy, BinaryCrossEntropyBackward>(r);
  derive<ops::binary_cross_entropy_backward, BinaryCrossEntropyBackwardBackward>(r);
  derive<ops::nll_loss_forward, NllLossBackward>(r);
  derive<ops::nll_loss2d_forward, NllLoss2dBackward>(r);
  derive<ops::nll_loss_backward, NllLossBackwardBackward>(r);
  derive<ops::nll_loss2d_backward, NllLoss2dBackwardBackward>(r);
  derive<ops::cross_entropy_forward, CrossEntropyBackward>(r);
}

}  // namespace rush
