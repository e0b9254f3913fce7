// Adagrad: gradients divided by the root of the sum of all their squares.
#pragma once
#include "nn/arg.h"
#include "optim/optimizer.h"

namespace rush::optim {

struct AdagradOptions : public OptimizerCloneableOptions<AdagradOptions> {
  AdagradOptions(double lr = 1e-2) : lr_(lr) {}
  RUSH_ARG(double, lr);
  RUSH_ARG(double, lr_decay) = 0;
  RUSH_ARG(double, weight_decay) = 0;
  // What the sums of squares start from.
  RUSH_ARG(double, initial_accumulator_value) = 0;
  RUSH_ARG(double, eps) = 1e-10;
  // Ascend instead.
  RUSH_ARG(bool, maximize) = false;
  // See Note [Capturable optimisers]. Not part of a state dict.
  RUSH_ARG(bool, capturable) = false;

 public:
  void check() const override;
  double get_lr() const override { return lr(); }
  void set_lr(double value) override { lr(value); }
  bool get_capturable() const override { return capturable(); }
  std::vector<double> device_numbers() const override { return {lr(), lr_decay(), eps(), weight_decay()}; }
  void visit(StateFields& fields) override;
};

struct AdagradParamState : public OptimizerCloneableParamState<AdagradParamState> {
  RUSH_ARG(int64_t, step) = 0;
  RUSH_ARG(Tensor, sum);
  // Of a capturable optimiser only, and then the one that counts.
  RUSH_ARG(Tensor, step_counter);
};

// torch.optim.Adagrad: s <- s + g^2, p <- p - lr / (1 + (step - 1) lr_decay) g / (sqrt(s) + eps). Duchi, Hazan and
// Singer, "Adaptive subgradient methods for online learning and stochastic optimization" (2011).
class Adagrad : public Optimizer {
 public:
  Adagrad(const std::vector<OptimizerParamGroup>& param_groups, AdagradOptions defaults = {})
      : Optimizer(param_groups, std::make_unique<AdagradOptions>(std::move(defaults))) {}
  Adagrad(std::vector<Tensor> params, AdagradOptions defaults = {})
      : Adagrad(std::vector<OptimizerParamGroup>{OptimizerParamGroup(std::move(params))}, std::move(defaults)) {}
  Tensor step(LossClosure closure = nullptr) override;

 private:
  void visit_state(StateFields& fields, std::unique_ptr<OptimizerParamState>& slot, const Tensor& param,
                   const OptimizerOptions& options) const override;
};

}  // namespace rush::optim
