// Adadelta: steps of the size of the steps before.
#pragma once
#include "nn/arg.h"
#include "optim/optimizer.h"

namespace rush::optim {

struct AdadeltaOptions : public OptimizerCloneableOptions<AdadeltaOptions> {
  AdadeltaOptions(double lr = 1.0) : lr_(lr) {}
  RUSH_ARG(double, lr);
  // How much of the mean squares stays from step to step.
  RUSH_ARG(double, rho) = 0.9;
  RUSH_ARG(double, eps) = 1e-6;
  RUSH_ARG(double, weight_decay) = 0;
  // Ascend instead.
  RUSH_ARG(bool, maximize) = false;
  // See Note [Capturable optimisers]. Not part of a state dict.
  RUSH_ARG(bool, capturable) = false;

 public:
  void check() const override;
  double get_lr() const override { return lr(); }
  void set_lr(double value) override { lr(value); }
  bool get_capturable() const override { return capturable(); }
  std::vector<double> device_numbers() const override { return {lr(), rho(), eps(), weight_decay()}; }
  void visit(StateFields& fields) override;
};

struct AdadeltaParamState : public OptimizerCloneableParamState<AdadeltaParamState> {
  RUSH_ARG(int64_t, step) = 0;
  // Mean squares of the gradients, and of the steps.
  RUSH_ARG(Tensor, square_avg);
  RUSH_ARG(Tensor, acc_delta);
  // Of a capturable optimiser only, and then the one that counts.
  RUSH_ARG(Tensor, step_counter);
};

// torch.optim.Adadelta: v <- rho v + (1 - rho) g^2, d = sqrt((u + eps) / (v + eps)) g, u <- rho u + (1 - rho) d^2,
// p <- p - lr d. M. Zeiler, "ADADELTA: an adaptive learning rate method" (2012).
class Adadelta : public Optimizer {
 public:
  Adadelta(const std::vector<OptimizerParamGroup>& param_groups, AdadeltaOptions defaults = {})
      : Optimizer(param_groups, std::make_unique<AdadeltaOptions>(std::move(defaults))) {}
  Adadelta(std::vector<Tensor> params, AdadeltaOptions defaults = {})
      : Adadelta(std::vector<OptimizerParamGroup>{OptimizerParamGroup(std::move(params))}, std::move(defaults)) {}
  Tensor step(LossClosure closure = nullptr) override;

 private:
  void visit_state(StateFields& fields, std::unique_ptr<OptimizerParamState>& slot, const Tensor& param,
                   const OptimizerOptions& options) const override;
};

}  // namespace rush::optim
