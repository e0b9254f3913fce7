// NAdam: Adam with Nesterov's momentum.
#pragma once
#include <tuple>

#include "nn/arg.h"
#include "optim/optimizer.h"

namespace rush::optim {

struct NAdamOptions : public OptimizerCloneableOptions<NAdamOptions> {
  using betas_t = std::tuple<double, double>;
  NAdamOptions(double lr = 2e-3) : lr_(lr) {}
  RUSH_ARG(double, lr);
  RUSH_ARG(betas_t, betas) = {0.9, 0.999};
  RUSH_ARG(double, eps) = 1e-8;
  RUSH_ARG(double, weight_decay) = 0;
  // How fast the momentum grows to its full size.
  RUSH_ARG(double, momentum_decay) = 4e-3;
  // The weights decay by themselves, as AdamW's do, not through the gradient.
  RUSH_ARG(bool, decoupled_weight_decay) = false;
  // Ascend instead.
  RUSH_ARG(bool, maximize) = false;
  // See Note [Capturable optimisers]. Not part of a state dict.
  RUSH_ARG(bool, capturable) = false;

 public:
  void check() const override;
  double get_lr() const override { return lr(); }
  void set_lr(double value) override { lr(value); }
  std::optional<double> get_momentum() const override { return std::get<0>(betas()); }
  void set_momentum(double value) override { std::get<0>(betas()) = value; }
  bool get_capturable() const override { return capturable(); }
  std::vector<double> device_numbers() const override;
  void visit(StateFields& fields) override;
};

struct NAdamParamState : public OptimizerCloneableParamState<NAdamParamState> {
  RUSH_ARG(int64_t, step) = 0;
  // The product of all momenta so far.
  RUSH_ARG(double, mu_product) = 1;
  RUSH_ARG(Tensor, exp_avg);
  RUSH_ARG(Tensor, exp_avg_sq);
  // Of a capturable optimiser only, and then the ones that count.
  RUSH_ARG(Tensor, step_counter);
  RUSH_ARG(Tensor, mu_product_counter);
};

// torch.optim.NAdam. T. Dozat, "Incorporating Nesterov momentum into Adam" (2016), algorithm 2.
class NAdam : public Optimizer {
 public:
  NAdam(const std::vector<OptimizerParamGroup>& param_groups, NAdamOptions defaults = {})
      : Optimizer(param_groups, std::make_unique<NAdamOptions>(std::move(defaults))) {}
  NAdam(std::vector<Tensor> params, NAdamOptions defaults = {})
      : NAdam(std::vector<OptimizerParamGroup>{OptimizerParamGroup(std::move(params))}, std::move(defaults)) {}
  Tensor step(LossClosure closure = nullptr) override;

 private:
  void visit_state(StateFields& fields, std::unique_ptr<OptimizerParamState>& slot, const Tensor& param,
                   const OptimizerOptions& options) const override;
};

}  // namespace rush::optim
