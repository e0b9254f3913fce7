// SparseAdam: Adam for parameters with sparse gradients.
#pragma once
#include <tuple>

#include "optim/step_optimizer.h"

namespace rush::optim {

/// The options' names are those of functors::Adam's formula.
struct SparseAdamOptions : public DescribedOptions<SparseAdamOptions> {
  static constexpr const char* kName = "SparseAdam";
  using betas_t = std::tuple<double, double>;
  SparseAdamOptions(double lr = 1e-3) : lr_(lr) {}
  RUSH_ARG(double, lr);
  RUSH_ARG(betas_t, betas) = {0.9, 0.999};
  RUSH_ARG(double, eps) = 1e-8;
  // Ascend instead.
  RUSH_ARG(bool, maximize) = false;

 public:
  static void describe(auto& o, auto&& visit) {
    visit("lr", o.lr());
    visit("betas", o.betas());
    visit("eps", o.eps());
    visit("maximize", o.maximize());
  }
};

/// m and v of functors::Adam: dense, with the parameter's sizes.
struct SparseAdamParamState : public DescribedParamState<SparseAdamParamState> {
  RUSH_ARG(Tensor, exp_avg);
  RUSH_ARG(Tensor, exp_avg_sq);

 public:
  StateTensors tensors() override { return {{{"exp_avg", &exp_avg()}, {"exp_avg_sq", &exp_avg_sq()}}}; }
};

/// torch.optim.SparseAdam: a step reads and writes only the rows, of parameter and state, that the gradient has entries
/// for. The moments of the others do not decay. Throws ValueError for a gradient that is not sparse.
class SparseAdam : public DescribedOptimizer<SparseAdamOptions, SparseAdamParamState> {
 public:
  using DescribedOptimizer::DescribedOptimizer;

 private:
  void gather(size_t group, StepLists& lists) const override;
};

}  // namespace rush::optim
