// Adam and AdamW, which differ in how weights decay.
#pragma once
#include <tuple>

#include "nn/arg.h"
#include "optim/optimizer.h"

namespace rush::optim {

template <bool decoupled>
struct BasicAdamOptions : public OptimizerCloneableOptions<BasicAdamOptions<decoupled>> {
  using betas_t = std::tuple<double, double>;
  BasicAdamOptions(double lr = 1e-3) : lr_(lr) {}
  RUSH_ARG(double, lr);
  RUSH_ARG(betas_t, betas) = {0.9, 0.999};
  RUSH_ARG(double, eps) = 1e-8;
  RUSH_ARG(double, weight_decay) = decoupled ? 1e-2 : 0;
  RUSH_ARG(bool, amsgrad) = false;
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
// Weight decay 0 by default.
using AdamOptions = BasicAdamOptions<false>;
// Weight decay 0.01 by default.
using AdamWOptions = BasicAdamOptions<true>;

struct AdamParamState : public OptimizerCloneableParamState<AdamParamState> {
  RUSH_ARG(int64_t, step) = 0;
  RUSH_ARG(Tensor, exp_avg);
  RUSH_ARG(Tensor, exp_avg_sq);
  // With AMSGrad only.
  RUSH_ARG(Tensor, max_exp_avg_sq);
  // Of a capturable optimiser only, and then the one that counts.
  RUSH_ARG(Tensor, step_counter);
};
using AdamWParamState = AdamParamState;

// torch.optim.Adam and AdamW; the formulas stand with functors::Adam.
template <bool decoupled>
class BasicAdam : public Optimizer {
 public:
  using Options = BasicAdamOptions<decoupled>;
  BasicAdam(const std::vector<OptimizerParamGroup>& param_groups, Options defaults = {})
      : Optimizer(param_groups, std::make_unique<Options>(std::move(defaults))) {}
  BasicAdam(std::vector<Tensor> params, Options defaults = {})
      : BasicAdam(std::vector<OptimizerParamGroup>{OptimizerParamGroup(std::move(params))}, std::move(defaults)) {}
  Tensor step(LossClosure closure = nullptr) override;

 private:
  void visit_state(StateFields& fields, std::unique_ptr<OptimizerParamState>& slot, const Tensor& param,
                   const OptimizerOptions& options) const override;
};
using Adam = BasicAdam<false>;
using AdamW = BasicAdam<true>;

}  // namespace rush::optim
