// Schedules that multiply the rate by a factor.
#pragma once
#include <functional>

#include "optim/schedules/lr_scheduler.h"

namespace rush::optim {

namespace detail {
// Whether a StepLR changes the rate one step later, as libtorch's; compat/ sets it.
inline bool step_lr_is_late = false;
}  // namespace detail

/// Multiplies the rate by gamma every step_size epochs.
class StepLR final : public LRScheduler {
 public:
  StepLR(Optimizer& optimizer, int64_t step_size, double gamma = 0.1);

 private:
  std::vector<double> get_lrs() override;
  std::vector<double> get_closed_form_lrs() override;
  void check() const override;
  void visit(StateFields& fields) override;
  int64_t step_size_;
  double gamma_;
};

/// Multiplies the rate by gamma at each milestone.
class MultiStepLR final : public LRScheduler {
 public:
  MultiStepLR(Optimizer& optimizer, std::vector<int64_t> milestones, double gamma = 0.1);

 private:
  std::vector<double> get_lrs() override;
  std::vector<double> get_closed_form_lrs() override;
  void check() const override;
  void visit(StateFields& fields) override;
  std::vector<int64_t> milestones_;  // sorted
  double gamma_;
};

/// Multiplies the rate by gamma every epoch.
class ExponentialLR final : public LRScheduler {
 public:
  ExponentialLR(Optimizer& optimizer, double gamma);

 private:
  std::vector<double> get_lrs() override;
  std::vector<double> get_closed_form_lrs() override;
  void visit(StateFields& fields) override;
  double gamma_;
};

/// Multiplies the rate by `factor` for the first total_iters epochs.
class ConstantLR final : public LRScheduler {
 public:
  ConstantLR(Optimizer& optimizer, double factor = 1.0 / 3, int64_t total_iters = 5);

 private:
  std::vector<double> get_lrs() override;
  std::vector<double> get_closed_form_lrs() override;
  void check() const override;
  void visit(StateFields& fields) override;
  double factor_;
  int64_t total_iters_;
};

/// Goes from start_factor to end_factor times the rate in total_iters epochs, then stays: a warm-up.
class LinearLR final : public LRScheduler {
 public:
  LinearLR(Optimizer& optimizer, double start_factor = 1.0 / 3, double end_factor = 1.0, int64_t total_iters = 5);

 private:
  std::vector<double> get_lrs() override;
  std::vector<double> get_closed_form_lrs() override;
  void check() const override;
  void visit(StateFields& fields) override;
  double start_factor_, end_factor_;
  int64_t total_iters_;
};

/// base (1 - epoch / total_iters)^power, and 0 from then on.
class PolynomialLR final : public LRScheduler {
 public:
  PolynomialLR(Optimizer& optimizer, int64_t total_iters = 5, double power = 1.0);

 private:
  std::vector<double> get_lrs() override;
  std::vector<double> get_closed_form_lrs() override;
  void check() const override;
  void visit(StateFields& fields) override;
  int64_t total_iters_;
  double power_;
};

/// The rate at the start times lambda(epoch); one function for all groups, or one each.
class LambdaLR final : public LRScheduler {
 public:
  using Lambda = std::function<double(int64_t epoch)>;
  LambdaLR(Optimizer& optimizer, Lambda lr_lambda);
  LambdaLR(Optimizer& optimizer, std::vector<Lambda> lr_lambdas);

 private:
  std::vector<double> get_lrs() override;
  void check() const override;
  std::vector<Lambda> lambdas_;
};

}  // namespace rush::optim
