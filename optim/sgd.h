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

 public:
  void check() const override;
  double get_lr() const override { return lr(); }
  void set_lr(double value) override { lr(value); }
  std::optional<double> get_momentum() const override { return momentum(); }
  void set_momentum(double value) override { momentum(value); }
  void visit(StateFields& fields) override;
};

struct SGDParamState : public OptimizerCloneableParamState<SGDParamState> {
  RUSH_ARG(Tensor, momentum_buffer);
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
  void visit_state(StateFields& fields, std::unique_ptr<OptimizerParamState>& slot, const Tensor& param,
                   const OptimizerOptions& options) const override;
};

}  // namespace rush::optim
