// RAdam: Adam that trusts its second moment only once there are enough samples of it.
#pragma once
#include <tuple>

#include "nn/arg.h"
#include "optim/optimizer.h"

namespace rush::optim {

struct RAdamOptions : public OptimizerCloneableOptions<RAdamOptions> {
  using betas_t = std::tuple<double, double>;
  RAdamOptions(double lr = 1e-3) : lr_(lr) {}
  RUSH_ARG(double, lr);
  RUSH_ARG(betas_t, betas) = {0.9, 0.999};
  RUSH_ARG(double, eps) = 1e-8;
  RUSH_ARG(double, weight_decay) = 0;
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

struct RAdamParamState : public OptimizerCloneableParamState<RAdamParamState> {
  RUSH_ARG(int64_t, step) = 0;
  RUSH_ARG(Tensor, exp_avg);
  RUSH_ARG(Tensor, exp_avg_sq);
  // Of a capturable optimiser only, and then the one that counts.
  RUSH_ARG(Tensor, step_counter);
};

// torch.optim.RAdam. Liu et al., "On the variance of the adaptive learning rate and beyond" (2019), algorithm 2.
class RAdam : public Optimizer {
 public:
  RAdam(const std::vector<OptimizerParamGroup>& param_groups, RAdamOptions defaults = {})
      : Optimizer(param_groups, std::make_unique<RAdamOptions>(std::move(defaults))) {}
  RAdam(std::vector<Tensor> params, RAdamOptions defaults = {})
      : RAdam(std::vector<OptimizerParamGroup>{OptimizerParamGroup(std::move(params))}, std::move(defaults)) {}
  Tensor step(LossClosure closure = nullptr) override;

 private:
  void visit_state(StateFields& fields, std::unique_ptr<OptimizerParamState>& slot, const Tensor& param,
                   const OptimizerOptions& options) const override;
};

}  // namespace rush::optim
