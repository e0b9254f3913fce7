// Schedules in waves: half a cosine, with and without restarts, and one cycle.
#pragma once
#include "nn/arg.h"
#include "optim/schedules/lr_scheduler.h"

namespace rush::optim {

/// eta_min + (base - eta_min) (1 + cos(pi epoch / T_max)) / 2. Loshchilov and Hutter, "SGDR: stochastic gradient
/// descent with warm restarts" (2016), without the restarts.
class CosineAnnealingLR final : public LRScheduler {
 public:
  CosineAnnealingLR(Optimizer& optimizer, int64_t T_max, double eta_min = 0);

 private:
  std::vector<double> get_lrs() override;
  std::vector<double> get_closed_form_lrs() override;
  void check() const override;
  void visit(StateFields& fields) override;
  int64_t T_max_;
  double eta_min_;
};

/// The same with restarts: it starts over after T_0 epochs, then after T_0 T_mult, T_0 T_mult^2 and so on.
class CosineAnnealingWarmRestarts final : public LRScheduler {
 public:
  CosineAnnealingWarmRestarts(Optimizer& optimizer, int64_t T_0, int64_t T_mult = 1, double eta_min = 0);
  void step() override;
  /// Goes to an epoch, of which there may be fractions: epoch + batch / batches. Throws ValueError if it is negative.
  void step(double epoch);

 private:
  std::vector<double> get_lrs() override;
  void jump_to(int64_t epoch) override { step(static_cast<double>(epoch)); }
  void check() const override;
  void visit(StateFields& fields) override;
  int64_t T_0_, T_mult_;
  double eta_min_;
  double T_i_, T_cur_ = 0;  // the length of this run, and how much of it is over
};

/// One cycle of total_steps steps, in which the rate goes up to max_lr and down again.
struct OneCycleLROptions {
  OneCycleLROptions(double max_lr, int64_t total_steps) : max_lr_({max_lr}), total_steps_(total_steps) {}
  OneCycleLROptions(std::vector<double> max_lr, int64_t total_steps)
      : max_lr_(std::move(max_lr)), total_steps_(total_steps) {}
  enum class Anneal { Cos, Linear };
  // One number for all groups, or one each.
  RUSH_ARG(std::vector<double>, max_lr);
  RUSH_ARG(int64_t, total_steps);
  // The part of the cycle in which the rate rises.
  RUSH_ARG(double, pct_start) = 0.3;
  RUSH_ARG(Anneal, anneal_strategy) = Anneal::Cos;
  // Lets the momentum (or Adam's beta1) fall to base_momentum while the rate rises.
  RUSH_ARG(bool, cycle_momentum) = true;
  RUSH_ARG(double, base_momentum) = 0.85;
  RUSH_ARG(double, max_momentum) = 0.95;
  // The rate starts at max_lr / div_factor and ends at that / final_div_factor.
  RUSH_ARG(double, div_factor) = 25;
  RUSH_ARG(double, final_div_factor) = 1e4;
  // Falls as long as it rose, and then to the end.
  RUSH_ARG(bool, three_phase) = false;
};

/// Smith and Topin, "Super-convergence: very fast training of neural networks using large learning rates" (2017). For
/// steps of one batch.
class OneCycleLR final : public LRScheduler {
 public:
  OneCycleLR(Optimizer& optimizer, OneCycleLROptions options);
  OneCycleLR(Optimizer& optimizer, double max_lr, int64_t total_steps)
      : OneCycleLR(optimizer, OneCycleLROptions(max_lr, total_steps)) {}

 private:
  enum class Level { Initial, Max, Min };
  struct Phase {
    double end_step;
    Level start, end;
    bool momentum_starts_high, momentum_ends_high;
  };
  std::vector<double> get_lrs() override;
  void check() const override;
  void visit(StateFields& fields) override;
  void make_phases();
  double anneal(double start, double end, double part) const;
  double level(size_t group, Level level) const;

  OneCycleLROptions options_;
  std::vector<Phase> phases_;
};

}  // namespace rush::optim
