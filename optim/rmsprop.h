// RMSprop: gradients divided by their root mean square.
#pragma once
#include "nn/arg.h"
#include "optim/optimizer.h"

namespace rush::optim {

struct RMSpropOptions : public OptimizerCloneableOptions<RMSpropOptions> {
  RMSpropOptions(double lr = 1e-2) : lr_(lr) {}
  RUSH_ARG(double, lr);
  // How much of the mean square stays from step to step.
  RUSH_ARG(double, alpha) = 0.99;
  RUSH_ARG(double, eps) = 1e-8;
  RUSH_ARG(double, weight_decay) = 0;
  RUSH_ARG(double, momentum) = 0;
  // Divides by the standard deviation, not by the root mean square.
  RUSH_ARG(bool, centered) = false;
  // Ascend instead.
  RUSH_ARG(bool, maximize) = false;
  // See Note [Capturable optimisers]. Not part of a state dict.
  RUSH_ARG(bool, capturable) = false;

 public:
  void check() const override;
  double get_lr() const override { return lr(); }
  void set_lr(double value) override { lr(value); }
  std::optional<double> get_momentum() const override { return momentum(); }
  void set_momentum(double value) override { momentum(value); }
  bool get_capturable() const override { return capturable(); }
  std::vector<double> device_numbers() const override { return {lr(), alpha(), eps(), weight_decay(), momentum()}; }
  void visit(StateFields& fields) override;
};

struct RMSpropParamState : public OptimizerCloneableParamState<RMSpropParamState> {
  RUSH_ARG(int64_t, step) = 0;
  RUSH_ARG(Tensor, square_avg);
  // With momentum only.
  RUSH_ARG(Tensor, momentum_buffer);
  // If centered only.
  RUSH_ARG(Tensor, grad_avg);
  // Of a capturable optimiser only, and then the one that counts.
  RUSH_ARG(Tensor, step_counter);
};

// torch.optim.RMSprop: v <- alpha v + (1 - alpha) g^2, p <- p - lr g / (sqrt(v) + eps). G. Hinton, "Neural networks for
// machine learning", lecture 6 (2012); centered: A. Graves, "Generating sequences with recurrent neural networks"
// (2013).
class RMSprop : public Optimizer {
 public:
  RMSprop(const std::vector<OptimizerParamGroup>& param_groups, RMSpropOptions defaults = {})
      : Optimizer(param_groups, std::make_unique<RMSpropOptions>(std::move(defaults))) {}
  RMSprop(std::vector<Tensor> params, RMSpropOptions defaults = {})
      : RMSprop(std::vector<OptimizerParamGroup>{OptimizerParamGroup(std::move(params))}, std::move(defaults)) {}
  Tensor step(LossClosure closure = nullptr) override;

 private:
  void visit_state(StateFields& fields, std::unique_ptr<OptimizerParamState>& slot, const Tensor& param,
                   const OptimizerOptions& options) const override;
};

}  // namespace rush::optim
