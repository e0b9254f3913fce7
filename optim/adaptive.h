// Optimisers that scale each element by a history of its own: Adagrad, Adadelta, RMSprop and Rprop.
#pragma once
#include <tuple>

#include "backends/functors/steps.h"
#include "optim/step_optimizer.h"

namespace rush::optim {

/// The options' names are those of functors::Adagrad's formula.
struct AdagradOptions : public DescribedOptions<AdagradOptions> {
  static constexpr const char* kName = "Adagrad";
  AdagradOptions(double lr = 1e-2) : lr_(lr) {}
  RUSH_ARG(double, lr);
  RUSH_ARG(double, lr_decay) = 0;
  RUSH_ARG(double, weight_decay) = 0;
  // What the sums of squares start from.
  RUSH_ARG(double, initial_accumulator_value) = 0;
  RUSH_ARG(double, eps) = 1e-10;
  RUSH_MAXIMIZE_AND_CAPTURABLE;

 public:
  static void describe(auto& o, auto&& visit) {
    visit("lr", o.lr());
    visit("lr_decay", o.lr_decay());
    visit("weight_decay", o.weight_decay());
    visit("initial_accumulator_value", o.initial_accumulator_value());
    visit("eps", o.eps());
    visit("maximize", o.maximize());
  }
  double initial(size_t) const { return initial_accumulator_value(); }  // what `sum` starts from
};

/// s of functors::Adagrad.
struct AdagradParamState : public DescribedParamState<AdagradParamState> {
  RUSH_ARG(Tensor, sum);

 public:
  StateTensors tensors() override { return {{{"sum", &sum()}}}; }
};

/// torch.optim.Adagrad; the formula stands with functors::Adagrad.
using Adagrad = DescribedOptimizer<AdagradOptions, AdagradParamState, AdagradStep>;

/// The options' names are those of functors::Adadelta's formula.
struct AdadeltaOptions : public DescribedOptions<AdadeltaOptions> {
  static constexpr const char* kName = "Adadelta";
  AdadeltaOptions(double lr = 1.0) : lr_(lr) {}
  RUSH_ARG(double, lr);
  // How much of the mean squares stays from step to step.
  RUSH_ARG(double, rho) = 0.9;
  RUSH_ARG(double, eps) = 1e-6;
  RUSH_ARG(double, weight_decay) = 0;
  RUSH_MAXIMIZE_AND_CAPTURABLE;

 public:
  void check() const override {
    DescribedOptions::check();
    RUSH_CHECK_VALUE(rho() >= 0 && rho() <= 1, "Adadelta: rho must be in [0, 1], got ", rho());
  }
  static void describe(auto& o, auto&& visit) {
    visit("lr", o.lr());
    visit("rho", o.rho(), Range::Any);
    visit("eps", o.eps());
    visit("weight_decay", o.weight_decay());
    visit("maximize", o.maximize());
  }
};

/// v and u of functors::Adadelta.
struct AdadeltaParamState : public DescribedParamState<AdadeltaParamState> {
  // Mean squares of the gradients, and of the steps.
  RUSH_ARG(Tensor, square_avg);
  RUSH_ARG(Tensor, acc_delta);

 public:
  StateTensors tensors() override { return {{{"square_avg", &square_avg()}, {"acc_delta", &acc_delta()}}}; }
};

/// torch.optim.Adadelta; the formula stands with functors::Adadelta.
using Adadelta = DescribedOptimizer<AdadeltaOptions, AdadeltaParamState, AdadeltaStep>;

/// The options' names are those of functors::RmsProp's formula.
struct RMSpropOptions : public DescribedOptions<RMSpropOptions> {
  static constexpr const char* kName = "RMSprop";
  RMSpropOptions(double lr = 1e-2) : lr_(lr) {}
  RUSH_ARG(double, lr);
  // How much of the mean square stays from step to step.
  RUSH_ARG(double, alpha) = 0.99;
  RUSH_ARG(double, eps) = 1e-8;
  RUSH_ARG(double, weight_decay) = 0;
  RUSH_ARG(double, momentum) = 0;
  // Divides by the standard deviation, not by the root mean square.
  RUSH_ARG(bool, centered) = false;
  RUSH_MAXIMIZE_AND_CAPTURABLE;

 public:
  static void describe(auto& o, auto&& visit) {
    visit("lr", o.lr());
    visit("alpha", o.alpha());
    visit("eps", o.eps());
    visit("weight_decay", o.weight_decay());
    visit("momentum", o.momentum());
    visit("centered", o.centered());
    visit("maximize", o.maximize());
  }
};

/// v, the buffer and a of functors::RmsProp.
struct RMSpropParamState : public DescribedParamState<RMSpropParamState> {
  RUSH_ARG(Tensor, square_avg);
  // With momentum only.
  RUSH_ARG(Tensor, momentum_buffer);
  // If centered only.
  RUSH_ARG(Tensor, grad_avg);

 public:
  StateTensors tensors() override {
    return {{{"square_avg", &square_avg()}, {"momentum_buffer", &momentum_buffer()}, {"grad_avg", &grad_avg()}}};
  }
};

/// torch.optim.RMSprop; the formula stands with functors::RmsProp.
using RMSprop = DescribedOptimizer<RMSpropOptions, RMSpropParamState, RmsPropStep>;

/// The options' names are those of functors::Rprop's formula: eta_minus and eta_plus, and the bounds of a size.
struct RpropOptions : public DescribedOptions<RpropOptions> {
  static constexpr const char* kName = "Rprop";
  using range_t = std::tuple<double, double>;
  /// What the step sizes start from.
  RpropOptions(double lr = 1e-2) : lr_(lr) {}
  RUSH_ARG(double, lr);
  // What step sizes are multiplied by where the gradient's sign changes, and where it does not.
  RUSH_ARG(range_t, etas) = {0.5, 1.2};
  // The smallest and the largest.
  RUSH_ARG(range_t, step_sizes) = {1e-6, 50};
  RUSH_MAXIMIZE_AND_CAPTURABLE;

 public:
  void check() const override {
    DescribedOptions::check();
    const auto [minus, plus] = etas();
    RUSH_CHECK_VALUE(minus > 0 && minus < 1 && plus > 1, "Rprop: the etas must be in (0, 1) and above 1, got ", minus,
                     " and ", plus);
  }
  static void describe(auto& o, auto&& visit) {
    visit("lr", o.lr());
    visit("etas", o.etas(), Range::Any);
    visit("step_sizes", o.step_sizes(), Range::Any);
    visit("maximize", o.maximize());
  }
  double initial(size_t state) const { return state == 1 ? lr() : 0; }  // what `step_size` starts from is lr
};

/// The last g and the sizes of functors::Rprop.
struct RpropParamState : public DescribedParamState<RpropParamState> {
  // The last gradient, 0 where its sign had changed.
  RUSH_ARG(Tensor, prev);
  RUSH_ARG(Tensor, step_size);

 public:
  StateTensors tensors() override { return {{{"prev", &prev()}, {"step_size", &step_size()}}}; }
};

/// torch.optim.Rprop, for gradients of whole data sets; the formula stands with functors::Rprop.
using Rprop = DescribedOptimizer<RpropOptions, RpropParamState, RpropStep>;

}  // namespace rush::optim
