// Stochastic gradient descent, plain and averaged.
#pragma once
#include "backends/functors/steps.h"
#include "optim/step_optimizer.h"

namespace rush::optim {

struct SGDOptions : public DescribedOptions<SGDOptions> {  // nesterov needs a momentum and no dampening
  static constexpr const char* kName = "SGD";
  SGDOptions(double lr) : lr_(lr) {}
  RUSH_ARG(double, lr);
  RUSH_ARG(double, momentum) = 0;
  RUSH_ARG(double, dampening) = 0;
  RUSH_ARG(double, weight_decay) = 0;
  RUSH_ARG(bool, nesterov) = false;
  RUSH_MAXIMIZE_AND_CAPTURABLE;

 public:
  void check() const override;
  static void describe(auto& o, auto&& visit) {
    visit("lr", o.lr());
    visit("momentum", o.momentum());
    visit("dampening", o.dampening(), Range::Any);
    visit("weight_decay", o.weight_decay());
    visit("nesterov", o.nesterov());
    visit("maximize", o.maximize());
  }
};

struct SGDParamState : public DescribedParamState<SGDParamState> {  // the buffer of functors::Sgd
  // With a momentum only.
  RUSH_ARG(Tensor, momentum_buffer);

 public:
  StateTensors tensors() override { return {{{"momentum_buffer", &momentum_buffer()}}}; }
  /// It counts on the device only, where the first step is one without a momentum yet.
  static constexpr bool kCounts = false;
  void count_there(const Tensor& param, bool capturable) override;
};

/// torch.optim.SGD; its formula is that of functors::Sgd. A sparse gradient changes only what it has entries for.
class SGD : public DescribedOptimizer<SGDOptions, SGDParamState, SgdStep> {
 public:
  using DescribedOptimizer::DescribedOptimizer;

 private:
  void gather(size_t group, StepLists& lists) const override;
};

RUSH_OPTIMIZER_PARTS(extern, SGDOptions, SGDParamState, SgdStep);

struct ASGDOptions : public DescribedOptions<ASGDOptions> {  // with the names of functors::Asgd's formula
  static constexpr const char* kName = "ASGD";
  ASGDOptions(double lr = 1e-2) : lr_(lr) {}
  RUSH_ARG(double, lr);
  // How fast the weights decay, and how fast the rate does.
  RUSH_ARG(double, lambd) = 1e-4;
  RUSH_ARG(double, alpha) = 0.75;
  // The step that averaging starts after.
  RUSH_ARG(double, t0) = 1e6;
  RUSH_ARG(double, weight_decay) = 0;
  RUSH_MAXIMIZE_AND_CAPTURABLE;

 public:
  static void describe(auto& o, auto&& visit) {
    visit("lr", o.lr());
    visit("lambd", o.lambd(), Range::Any);
    visit("alpha", o.alpha(), Range::Any);
    visit("t0", o.t0(), Range::Any);
    visit("weight_decay", o.weight_decay());
    visit("maximize", o.maximize());
  }
};

struct ASGDParamState : public DescribedParamState<ASGDParamState> {  // `a` of functors::Asgd
  // The average of the parameter.
  RUSH_ARG(Tensor, ax);

 public:
  StateTensors tensors() override { return {{{"ax", &ax()}}}; }
};

/// torch.optim.ASGD; its formula is that of functors::Asgd. The rate follows from the step's number and the present lr.
using ASGD = DescribedOptimizer<ASGDOptions, ASGDParamState, AsgdStep>;

}  // namespace rush::optim
