// L-BFGS: a quasi-Newton method for few parameters and losses without noise.
#pragma once
#include <deque>
#include <string>

#include "nn/arg.h"
#include "optim/optimizer.h"

namespace rush::optim {

/// When a step ends, and what its directions are made from.
struct LBFGSOptions : public OptimizerCloneableOptions<LBFGSOptions> {
  LBFGSOptions(double lr = 1) : lr_(lr) {}
  RUSH_ARG(double, lr);
  // The most iterations, and evaluations of the closure, in one step; 5/4 of max_iter evaluations by default.
  RUSH_ARG(int64_t, max_iter) = 20;
  RUSH_ARG(std::optional<int64_t>, max_eval) = std::nullopt;
  // A step ends when no gradient is larger, or when neither the loss nor a parameter changes by more.
  RUSH_ARG(double, tolerance_grad) = 1e-7;
  RUSH_ARG(double, tolerance_change) = 1e-9;
  // How many updates the inverse Hessian is made of.
  RUSH_ARG(int64_t, history_size) = 100;
  // "strong_wolfe", or nothing: each iteration goes lr along its direction.
  RUSH_ARG(std::optional<std::string>, line_search_fn) = std::nullopt;

 public:
  void check() const override;
  double get_lr() const override { return lr(); }
  void set_lr(double value) override { lr(value); }
  void visit(StateFields& fields) override;
};

/// The state of all parameters as one vector; it stands with the first one.
struct LBFGSParamState : public OptimizerCloneableParamState<LBFGSParamState> {
  RUSH_ARG(int64_t, func_evals) = 0;
  RUSH_ARG(int64_t, n_iter) = 0;
  RUSH_ARG(double, t) = 0;  // the last step's length along the direction d
  RUSH_ARG(double, prev_loss) = 0;
  RUSH_ARG(double, H_diag) = 1;
  RUSH_ARG(Tensor, d);
  RUSH_ARG(Tensor, prev_flat_grad);
  // The history, oldest first: changes of the gradient, changes of the parameters, and 1 over their products.
  RUSH_ARG(std::deque<Tensor>, old_dirs);
  RUSH_ARG(std::deque<Tensor>, old_stps);
  RUSH_ARG(std::vector<double>, ro);
};

/// torch.optim.LBFGS. Nocedal and Wright, "Numerical Optimization" (2006), algorithm 7.5. It has one parameter group.
class LBFGS : public Optimizer {
 public:
  /// Throws ValueError unless there is one group, with a parameter in it.
  LBFGS(const std::vector<OptimizerParamGroup>& param_groups, LBFGSOptions defaults = {});
  LBFGS(std::vector<Tensor> params, LBFGSOptions defaults = {})
      : LBFGS(std::vector<OptimizerParamGroup>{OptimizerParamGroup(std::move(params))}, std::move(defaults)) {}
  /// Several iterations. The closure drops the gradients, computes the loss and calls backward() on it; it is called
  /// once an iteration or more often. Returns the loss at the start. Throws ValueError without a closure. When it
  /// throws, or the closure does, parameters and state are as before the step.
  Tensor step(LossClosure closure) override;

 private:
  void visit_state(StateFields& fields, std::unique_ptr<OptimizerParamState>& slot, const Tensor& param,
                   const OptimizerOptions& options) const override;

  const std::vector<Tensor>& params() const { return param_groups_[0].params(); }
  Tensor iterate(const LossClosure& closure, LBFGSParamState& state);
  int64_t numel() const;
  Tensor flat_grad() const;
  // Adds step * direction to the parameters.
  void move_params(double step, const Tensor& direction) const;
};

}  // namespace rush::optim
