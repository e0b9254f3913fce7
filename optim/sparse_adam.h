// SparseAdam: Adam for parameters with sparse gradients.
#pragma once
#include <tuple>

#include "nn/arg.h"
#include "optim/optimizer.h"

namespace rush::optim {

struct SparseAdamOptions : public OptimizerCloneableOptions<SparseAdamOptions> {
  using betas_t = std::tuple<double, double>;
  SparseAdamOptions(double lr = 1e-3) : lr_(lr) {}
  RUSH_ARG(double, lr);
  RUSH_ARG(betas_t, betas) = {0.9, 0.999};
  RUSH_ARG(double, eps) = 1e-8;
  // Ascend instead.
  RUSH_ARG(bool, maximize) = false;

 public:
  void check() const override;
  double get_lr() const override { return lr(); }
  void set_lr(double value) override { lr(value); }
  std::optional<double> get_momentum() const override { return std::get<0>(betas()); }
  void set_momentum(double value) override { std::get<0>(betas()) = value; }
  void visit(StateFields& fields) override;
};

struct SparseAdamParamState : public OptimizerCloneableParamState<SparseAdamParamState> {
  RUSH_ARG(int64_t, step) = 0;
  RUSH_ARG(Tensor, exp_avg);
  RUSH_ARG(Tensor, exp_avg_sq);
};

// torch.optim.SparseAdam: a step reads and writes only the rows, of parameter and state, that the gradient has entries
// for. The moments of the others do not decay. Throws ValueError for a gradient that is not sparse.
class SparseAdam : public Optimizer {
 public:
  SparseAdam(const std::vector<OptimizerParamGroup>& param_groups, SparseAdamOptions defaults = {})
      : Optimizer(param_groups, std::make_unique<SparseAdamOptions>(std::move(defaults))) {}
  SparseAdam(std::vector<Tensor> params, SparseAdamOptions defaults = {})
      : SparseAdam(std::vector<OptimizerParamGroup>{OptimizerParamGroup(std::move(params))}, std::move(defaults)) {}
  Tensor step(LossClosure closure = nullptr) override;

 private:
  void visit_state(StateFields& fields, std::unique_ptr<OptimizerParamState>& slot, const Tensor& param,
                   const OptimizerOptions& options) const override;
};

}  // namespace rush::optim
