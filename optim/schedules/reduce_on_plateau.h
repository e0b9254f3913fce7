// ReduceLROnPlateau: lowers the rate when a metric stops to improve.
#pragma once
#include "nn/arg.h"
#include "optim/schedules/lr_scheduler.h"

namespace rush::optim {

/// When the rates are lowered, and by how much.
struct ReduceLROnPlateauOptions {
  ReduceLROnPlateauOptions() = default;
  /// Whether a smaller or a larger metric is better.
  enum class Mode { Min, Max };
  /// Whether `threshold` counts relative to the best metric so far.
  enum class ThresholdMode { Rel, Abs };
  RUSH_ARG(Mode, mode) = Mode::Min;
  // What the rates are multiplied by.
  RUSH_ARG(double, factor) = 0.1;
  // How many steps without improvement are tolerated; the next one lowers the rates.
  RUSH_ARG(int64_t, patience) = 10;
  // By how much a metric has to be better than the best one.
  RUSH_ARG(double, threshold) = 1e-4;
  RUSH_ARG(ThresholdMode, threshold_mode) = ThresholdMode::Rel;
  // How many steps after lowering the rates do not count.
  RUSH_ARG(int64_t, cooldown) = 0;
  // No rate falls below; one number for all groups, or one each.
  RUSH_ARG(std::vector<double>, min_lr) = {0};
  // A rate that would change by no more than this stays.
  RUSH_ARG(double, eps) = 1e-8;
};

/// torch.optim.lr_scheduler.ReduceLROnPlateau. It changes nothing until its first step.
class ReduceLROnPlateau : public LRScheduler {
 public:
  explicit ReduceLROnPlateau(Optimizer& optimizer, ReduceLROnPlateauOptions options = {});
  /// Takes the metric of an epoch into account. NaN is no improvement.
  void step(double metric);
  /// Throws ValueError: there is no metric.
  void step() final;
  /// Forgets the best metric and all counts.
  void reset();

 private:
  std::vector<double> get_lrs() override { return current_lrs(); }
  void check() const override;
  void visit(StateFields& fields) override;
  bool is_better(double metric) const;
  void reduce_lrs();

  ReduceLROnPlateauOptions options_;
  double best_;
  int64_t bad_epochs_ = 0, cooldown_left_ = 0;
};

/// The same by libtorch's name and arguments.
class ReduceLROnPlateauScheduler final : public ReduceLROnPlateau {
 public:
  enum SchedulerMode { min, max };
  enum ThresholdMode { rel, abs };
  /// `min_lr` is empty, or has a number for each group. With `verbose`, each change of a rate is printed.
  explicit ReduceLROnPlateauScheduler(Optimizer& optimizer, SchedulerMode mode = min, float factor = 0.1f,
                                      int patience = 10, double threshold = 1e-4, ThresholdMode threshold_mode = rel,
                                      int cooldown = 0, const std::vector<float>& min_lr = {}, double eps = 1e-8,
                                      bool verbose = false);
  using ReduceLROnPlateau::step;
  void step(float metric);

 private:
  bool verbose_;
};

}  // namespace rush::optim
