#include "optim/schedules/reduce_on_plateau.h"

#include <algorithm>
#include <cstdio>
#include <limits>

#include "autograd/compile/tracer.h"

namespace rush::optim {

ReduceLROnPlateau::ReduceLROnPlateau(Optimizer& optimizer, ReduceLROnPlateauOptions options)
    : LRScheduler(optimizer, /*starts_over=*/false), options_(std::move(options)) {
  ReduceLROnPlateau::check();
  reset();
  last_epoch_ = 0;
  last_lrs_ = current_lrs();
}

void ReduceLROnPlateau::check() const {
  const auto& o = options_;
  RUSH_CHECK_VALUE(o.factor() >= 0 && o.factor() < 1, "ReduceLROnPlateau: the factor must be in [0, 1), got ",
                   o.factor());
  const size_t groups = optimizer_.param_groups().size();
  RUSH_CHECK_VALUE(o.min_lr().size() == 1 || o.min_lr().size() == groups, "ReduceLROnPlateau: expected ", groups,
                   " minimal rates, one for each parameter group, got ", o.min_lr().size());
}

void ReduceLROnPlateau::visit(StateFields& fields) {
  LRScheduler::visit(fields);
  fields.enumeration("mode", options_.mode(), 2);
  fields("factor", options_.factor());
  fields("patience", options_.patience());
  fields("threshold", options_.threshold());
  fields.enumeration("threshold_mode", options_.threshold_mode(), 2);
  fields("cooldown", options_.cooldown());
  fields("min_lr", options_.min_lr());
  fields("eps", options_.eps());
  fields("best", best_);
  fields("num_bad_epochs", bad_epochs_);
  fields("cooldown_counter", cooldown_left_);
}

void ReduceLROnPlateau::reset() {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  best_ = options_.mode() == ReduceLROnPlateauOptions::Mode::Min ? kInfinity : -kInfinity;
  bad_epochs_ = cooldown_left_ = 0;
}

bool ReduceLROnPlateau::is_better(double metric) const {
  const bool relative = options_.threshold_mode() == ReduceLROnPlateauOptions::ThresholdMode::Rel;
  const double threshold = options_.threshold();
  if (options_.mode() == ReduceLROnPlateauOptions::Mode::Min) {
    return metric < (relative ? best_ * (1 - threshold) : best_ - threshold);
  }
  return metric > (relative ? best_ * (1 + threshold) : best_ + threshold);
}

void ReduceLROnPlateau::step() { RUSH_THROW(ValueError, "ReduceLROnPlateau: step needs the metric"); }

void ReduceLROnPlateau::step(double metric) {
  compiler::Tracer::end_before("it steps a schedule by a number");
  check();  // the optimiser may have got more groups
  ++last_epoch_;
  if (is_better(metric)) {
    best_ = metric;
    bad_epochs_ = 0;
  } else {
    ++bad_epochs_;
  }
  if (cooldown_left_ > 0) {
    --cooldown_left_;
    bad_epochs_ = 0;
  }
  if (bad_epochs_ > options_.patience()) {
    reduce_lrs();
    cooldown_left_ = options_.cooldown();
    bad_epochs_ = 0;
  }
  last_lrs_ = current_lrs();
}

void ReduceLROnPlateau::reduce_lrs() {
  auto& groups = optimizer_.param_groups();
  const std::vector<double>& least = options_.min_lr();
  for (size_t i = 0; i < groups.size(); ++i) {
    const double old_lr = groups[i].options().get_lr();
    const double new_lr = std::max(old_lr * options_.factor(), least.size() == 1 ? least[0] : least[i]);
    if (old_lr - new_lr > options_.eps()) groups[i].options().set_lr(new_lr);
  }
}

static ReduceLROnPlateauOptions make_options(bool smaller_is_better, float factor, int patience, double threshold,
                                             bool relative, int cooldown, const std::vector<float>& min_lr,
                                             double eps) {
  using Options = ReduceLROnPlateauOptions;
  Options options;
  options.mode(smaller_is_better ? Options::Mode::Min : Options::Mode::Max).factor(factor).patience(patience);
  options.threshold(threshold).cooldown(cooldown).eps(eps);
  options.threshold_mode(relative ? Options::ThresholdMode::Rel : Options::ThresholdMode::Abs);
  if (!min_lr.empty()) options.min_lr(std::vector<double>(min_lr.begin(), min_lr.end()));
  return options;
}

ReduceLROnPlateauScheduler::ReduceLROnPlateauScheduler(Optimizer& optimizer, SchedulerMode mode, float factor,
                                                       int patience, double threshold, ThresholdMode threshold_mode,
                                                       int cooldown, const std::vector<float>& min_lr, double eps,
                                                       bool verbose)
    : ReduceLROnPlateau(optimizer, make_options(mode == min, factor, patience, threshold, threshold_mode == rel,
                                                cooldown, min_lr, eps)),
      verbose_(verbose) {}

void ReduceLROnPlateauScheduler::step(float metric) {
  const std::vector<double> before = current_lrs();
  ReduceLROnPlateau::step(metric);
  const std::vector<double> after = current_lrs();
  for (size_t i = 0; verbose_ && i < after.size(); ++i) {
    if (after[i] != before[i]) std::printf("Reducing learning rate of group %zu to %.4g\n", i, after[i]);
  }
}

}  // namespace rush::optim
