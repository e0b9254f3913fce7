// Stochastic gradient descent.
#pragma once
#include "nn/arg.h"
#include "optim/optimizer.h"

namespace rush::optim {

struct SGDOptions : public OptimizerCloneableOptions<SGDOptions> {
  SGDOptions(double lr) : lr_(lr) {}
  RUSH_ARG(double, lr);
  RUSH_ARG(double, momentum) = 0;
  RUSH_ARG(double, dampening) = 0;
  RUSH_ARG(double, weight_decay) = 0;
  RUSH_ARG(bool, nesterov) = false;
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
  std::vector<double> device_numbers() const override { return {lr(), momentum(), dampening(), weight_decay()}; }
  void visit(StateFields& fields) override;
};

struct SGDParamState : public OptimizerCloneableParamState<SGDParamState> {
  // With a momentum only.
  RUSH_ARG(Tensor, momentum_buffer);
  // How many steps were taken, of a capturable optimiser only.
  RUSH_ARG(Tensor, step_counter);
};

// torch.optim.SGD; the formula stands with functors::Sgd.
class SGD : public Optimizer {
 public:
  SGD(const std::vector<OptimizerParamGroup>& param_groups, SGDOptions defaults)
      : Optimizer(param_groups, std::make_unique<SGDOptions>(std::move(defaults))) {}
  SGD(std::vector<Tensor> params, SGDOptions defaults)
      : SGD(std::vector<OptimizerParamGroup>{OptimizerParamGroup(std::move(params))}, std::move(defaults)) {}
  Tensor step(LossClosure closure = nullptr) override;

 private:
  const SGDOptions& options(size_t group) const;
  void gather_sparse(size_t group, StepLists& lists) const;
  void visit_state(StateFields& fields, std::unique_ptr<OptimizerParamState>& slot, const Tensor& param,
                   const OptimizerOptions& options) const override;
};

}  // namespace rush::optim
