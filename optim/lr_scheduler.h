// Learning-rate schedules. Each sets the rate of every group of an optimiser when it is made, and again at each step(),
// which is called after the optimiser's (once an epoch, or once a batch).
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "nn/arg.h"
#include "optim/optimizer.h"

namespace rush::optim {

// Note [Schedules are chainable]
// As in PyTorch, a schedule computes the next rate from the present one wherever it can, so that two schedules of one
// optimiser multiply their effects. The same rate as a function of the epoch alone, get_closed_form_lrs, serves a
// schedule that is entered in the middle (SequentialLR).
class LRScheduler {
 public:
  explicit LRScheduler(Optimizer& optimizer);
  virtual ~LRScheduler() = default;
  LRScheduler(const LRScheduler&) = delete;
  LRScheduler& operator=(const LRScheduler&) = delete;

  virtual void step();
  // The rates that were set last, one for each group.
  const std::vector<double>& get_last_lr() const { return last_lrs_; }
  int64_t last_epoch() const { return last_epoch_; }

 protected:
  friend class SequentialLR;

  // The rates for epoch `last_epoch_`, which was just raised by one.
  virtual std::vector<double> get_lrs() = 0;
  virtual std::vector<double> get_closed_form_lrs() { return get_lrs(); }
  // Sets the rates of epoch 0; the constructors of derived classes end with it.
  virtual void initial_step();
  // Takes back what the constructor's initial_step counted.
  virtual void undo_initial_step() { --last_epoch_; }
  // Goes on from `epoch`, by the closed form.
  virtual void jump_to(int64_t epoch);

  std::vector<double> current_lrs() const;
  // The rates that the groups have now, each times `factor`.
  std::vector<double> scaled(double factor) const;
  // `factor` times the rates that the groups started with.
  std::vector<double> scaled_base(double factor) const;

  Optimizer& optimizer_;
  std::vector<double> base_lrs_;
  std::vector<double> last_lrs_;
  int64_t last_epoch_ = -1;
  bool is_initial_ = false;  // inside initial_step

 private:
  void set_lrs(const std::vector<double>& lrs);
};

// Multiplies the rate by gamma every step_size epochs.
class StepLR final : public LRScheduler {
 public:
  StepLR(Optimizer& optimizer, int64_t step_size, double gamma = 0.1);

 private:
  std::vector<double> get_lrs() override;
  std::vector<double> get_closed_form_lrs() override;
  int64_t step_size_;
  double gamma_;
};

// Multiplies the rate by gamma at each milestone.
class MultiStepLR final : public LRScheduler {
 public:
  MultiStepLR(Optimizer& optimizer, std::vector<int64_t> milestones, double gamma = 0.1);

 private:
  std::vector<double> get_lrs() override;
  std::vector<double> get_closed_form_lrs() override;
  std::vector<int64_t> milestones_;  // sorted
  double gamma_;
};

// Multiplies the rate by gamma every epoch.
class ExponentialLR final : public LRScheduler {
 public:
  ExponentialLR(Optimizer& optimizer, double gamma);

 private:
  std::vector<double> get_lrs() override;
  std::vector<double> get_closed_form_lrs() override;
  double gamma_;
};

// Goes from start_factor to end_factor times the rate in total_iters epochs, then stays: a warm-up.
class LinearLR final : public LRScheduler {
 public:
  LinearLR(Optimizer& optimizer, double start_factor = 1.0 / 3, double end_factor = 1.0, int64_t total_iters = 5);

 private:
  std::vector<double> get_lrs() override;
  std::vector<double> get_closed_form_lrs() override;
  double start_factor_, end_factor_;
  int64_t total_iters_;
};

// eta_min + (base - eta_min) (1 + cos(pi epoch / T_max)) / 2. Loshchilov and Hutter, "SGDR: stochastic gradient descent
// with warm restarts" (2016), without the restarts.
class CosineAnnealingLR final : public LRScheduler {
 public:
  CosineAnnealingLR(Optimizer& optimizer, int64_t T_max, double eta_min = 0);

 private:
  std::vector<double> get_lrs() override;
  std::vector<double> get_closed_form_lrs() override;
  int64_t T_max_;
  double eta_min_;
};

// The rate at the start times lambda(epoch); one function for all groups, or one each.
class LambdaLR final : public LRScheduler {
 public:
  using Lambda = std::function<double(int64_t epoch)>;
  LambdaLR(Optimizer& optimizer, Lambda lr_lambda);
  LambdaLR(Optimizer& optimizer, std::vector<Lambda> lr_lambdas);

 private:
  std::vector<double> get_lrs() override;
  std::vector<Lambda> lambdas_;
};

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

// Smith and Topin, "Super-convergence: very fast training of neural networks using large learning rates" (2017). For
// steps of one batch.
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
  double anneal(double start, double end, double part) const;
  double level(size_t group, Level level) const;

  OneCycleLROptions options_;
  std::vector<Phase> phases_;
};

// One schedule after another, each from its beginning when its milestone comes: milestones.size() + 1 schedules of the
// same optimiser, which this one owns from now on.
class SequentialLR final : public LRScheduler {
 public:
  SequentialLR(Optimizer& optimizer, std::vector<std::shared_ptr<LRScheduler>> schedulers,
               std::vector<int64_t> milestones);
  void step() override;

 private:
  std::vector<double> get_lrs() override { return current_lrs(); }
  void initial_step() override;
  void undo_initial_step() override;
  void jump_to(int64_t epoch) override;

  std::vector<std::shared_ptr<LRScheduler>> schedulers_;
  std::vector<int64_t> milestones_;
};

}  // namespace rush::optim
