// Adam and its kin: AdamW, which differs in how weights decay, Adamax, NAdam and RAdam.
#pragma once
#include <tuple>

#include "backends/functors/steps.h"
#include "optim/step_optimizer.h"

namespace rush::optim {

/// The options' names are those of functors::Adam's formula; with amsgrad it takes the largest v so far.
template <bool decoupled>
struct BasicAdamOptions : public DescribedOptions<BasicAdamOptions<decoupled>> {
  static constexpr const char* kName = decoupled ? "AdamW" : "Adam";
  using betas_t = std::tuple<double, double>;
  BasicAdamOptions(double lr = 1e-3) : lr_(lr) {}
  RUSH_ARG(double, lr);
  RUSH_ARG(betas_t, betas) = {0.9, 0.999};
  RUSH_ARG(double, eps) = 1e-8;
  RUSH_ARG(double, weight_decay) = decoupled ? 1e-2 : 0;
  RUSH_ARG(bool, amsgrad) = false;
  RUSH_MAXIMIZE_AND_CAPTURABLE;

 public:
  static void describe(auto& o, auto&& visit) {
    visit("lr", o.lr());
    visit("betas", o.betas());
    visit("eps", o.eps());
    visit("weight_decay", o.weight_decay());
    visit("amsgrad", o.amsgrad());
    visit("maximize", o.maximize());
    if constexpr (requires { visit.flag(decoupled); }) visit.flag(decoupled);
  }
};
/// Weight decay 0 by default.
using AdamOptions = BasicAdamOptions<false>;
/// Weight decay 0.01 by default.
using AdamWOptions = BasicAdamOptions<true>;

/// m and v of functors::Adam, and the largest v.
struct AdamParamState : public DescribedParamState<AdamParamState> {
  RUSH_ARG(Tensor, exp_avg);
  RUSH_ARG(Tensor, exp_avg_sq);
  // With AMSGrad only.
  RUSH_ARG(Tensor, max_exp_avg_sq);

 public:
  StateTensors tensors() override {
    return {{{"exp_avg", &exp_avg()}, {"exp_avg_sq", &exp_avg_sq()}, {"max_exp_avg_sq", &max_exp_avg_sq()}}};
  }
};
using AdamWParamState = AdamParamState;

/// torch.optim.Adam and AdamW; the formulas stand with functors::Adam.
using Adam = DescribedOptimizer<AdamOptions, AdamParamState, AdamStep>;
using AdamW = DescribedOptimizer<AdamWOptions, AdamParamState, AdamStep>;

RUSH_OPTIMIZER_PARTS(extern, AdamOptions, AdamParamState, AdamStep);
RUSH_OPTIMIZER_PARTS(extern, AdamWOptions, AdamParamState, AdamStep);

/// The options' names are those of functors::Adamax's formula.
struct AdamaxOptions : public DescribedOptions<AdamaxOptions> {
  static constexpr const char* kName = "Adamax";
  using betas_t = std::tuple<double, double>;
  AdamaxOptions(double lr = 2e-3) : lr_(lr) {}
  RUSH_ARG(double, lr);
  RUSH_ARG(betas_t, betas) = {0.9, 0.999};
  RUSH_ARG(double, eps) = 1e-8;
  RUSH_ARG(double, weight_decay) = 0;
  RUSH_MAXIMIZE_AND_CAPTURABLE;

 public:
  static void describe(auto& o, auto&& visit) {
    visit("lr", o.lr());
    visit("betas", o.betas());
    visit("eps", o.eps());
    visit("weight_decay", o.weight_decay());
    visit("maximize", o.maximize());
  }
};

/// m and u of functors::Adamax.
struct AdamaxParamState : public DescribedParamState<AdamaxParamState> {
  RUSH_ARG(Tensor, exp_avg);
  // The largest gradient so far, which decays.
  RUSH_ARG(Tensor, exp_inf);

 public:
  StateTensors tensors() override { return {{{"exp_avg", &exp_avg()}, {"exp_inf", &exp_inf()}}}; }
};

/// torch.optim.Adamax; the formula stands with functors::Adamax.
using Adamax = DescribedOptimizer<AdamaxOptions, AdamaxParamState, AdamaxStep>;

/// The options' names are those of functors::NAdam's formula.
struct NAdamOptions : public DescribedOptions<NAdamOptions> {
  static constexpr const char* kName = "NAdam";
  using betas_t = std::tuple<double, double>;
  NAdamOptions(double lr = 2e-3) : lr_(lr) {}
  RUSH_ARG(double, lr);
  RUSH_ARG(betas_t, betas) = {0.9, 0.999};
  RUSH_ARG(double, eps) = 1e-8;
  RUSH_ARG(double, weight_decay) = 0;
  // How fast the momentum grows to its full size.
  RUSH_ARG(double, momentum_decay) = 4e-3;
  // The weights decay by themselves, as AdamW's do, not through the gradient.
  RUSH_ARG(bool, decoupled_weight_decay) = false;
  RUSH_MAXIMIZE_AND_CAPTURABLE;

 public:
  static void describe(auto& o, auto&& visit) {
    visit("lr", o.lr());
    visit("betas", o.betas());
    visit("eps", o.eps());
    visit("weight_decay", o.weight_decay());
    visit("momentum_decay", o.momentum_decay());
    visit("decoupled_weight_decay", o.decoupled_weight_decay());
    visit("maximize", o.maximize());
  }
  // The momentum of step t, with the options of an NAdamStep. Throws ValueError unless there are as many.
  static double momentum_at(ArrayRef<double> options, int64_t t);
};

/// m, v and P of functors::NAdam.
struct NAdamParamState : public DescribedParamState<NAdamParamState> {
  // The product of all momenta so far.
  RUSH_ARG(double, mu_product) = 1;
  RUSH_ARG(Tensor, exp_avg);
  RUSH_ARG(Tensor, exp_avg_sq);
  // Of a capturable optimiser only, and then the one that counts.
  RUSH_ARG(Tensor, mu_product_counter);

 public:
  StateTensors tensors() override { return {{{"exp_avg", &exp_avg()}, {"exp_avg_sq", &exp_avg_sq()}}}; }
  MuProduct mu_product_slots() override { return {&mu_product(), &mu_product_counter()}; }
};

/// torch.optim.NAdam, Adam with Nesterov's momentum; the formula stands with functors::NAdam.
using NAdam = DescribedOptimizer<NAdamOptions, NAdamParamState, NAdamStep>;

/// The options' names are those of functors::RAdam's formula.
struct RAdamOptions : public DescribedOptions<RAdamOptions> {
  static constexpr const char* kName = "RAdam";
  using betas_t = std::tuple<double, double>;
  RAdamOptions(double lr = 1e-3) : lr_(lr) {}
  RUSH_ARG(double, lr);
  RUSH_ARG(betas_t, betas) = {0.9, 0.999};
  RUSH_ARG(double, eps) = 1e-8;
  RUSH_ARG(double, weight_decay) = 0;
  // The weights decay by themselves, as AdamW's do, not through the gradient.
  RUSH_ARG(bool, decoupled_weight_decay) = false;
  RUSH_MAXIMIZE_AND_CAPTURABLE;

 public:
  static void describe(auto& o, auto&& visit) {
    visit("lr", o.lr());
    visit("betas", o.betas());
    visit("eps", o.eps());
    visit("weight_decay", o.weight_decay());
    visit("decoupled_weight_decay", o.decoupled_weight_decay());
    visit("maximize", o.maximize());
  }
};

/// m and v of functors::RAdam.
struct RAdamParamState : public DescribedParamState<RAdamParamState> {
  RUSH_ARG(Tensor, exp_avg);
  RUSH_ARG(Tensor, exp_avg_sq);

 public:
  StateTensors tensors() override { return {{{"exp_avg", &exp_avg()}, {"exp_avg_sq", &exp_avg_sq()}}}; }
};

/// torch.optim.RAdam: Adam that trusts its second moment only once there are enough samples of it. The formula stands
/// with functors::RAdam.
using RAdam = DescribedOptimizer<RAdamOptions, RAdamParamState, RAdamStep>;

}  // namespace rush::optim
