#include "optim/lr_scheduler.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace rush::optim {

using std::numbers::pi;

// ---- the base
// --------------------------------------------------------------------------------------------------------

LRScheduler::LRScheduler(Optimizer& optimizer) : optimizer_(optimizer) {
  for (OptimizerParamGroup& group : optimizer.param_groups()) {
    if (!group.initial_lr()) group.initial_lr() = group.options().get_lr();
    base_lrs_.push_back(*group.initial_lr());
  }
}

void LRScheduler::initial_step() {
  is_initial_ = true;
  ++last_epoch_;
  set_lrs(get_lrs());
  is_initial_ = false;
}

void LRScheduler::step() {
  ++last_epoch_;
  set_lrs(get_lrs());
}

void LRScheduler::jump_to(int64_t epoch) {
  last_epoch_ = epoch;
  set_lrs(get_closed_form_lrs());
}

void LRScheduler::set_lrs(const std::vector<double>& lrs) {
  auto& groups = optimizer_.param_groups();
  RUSH_CHECK(lrs.size() == groups.size(), "LRScheduler: the optimizer has ", groups.size(), " parameter groups, the ",
             "schedule was made for ", lrs.size());
  for (size_t i = 0; i < groups.size(); ++i) groups[i].options().set_lr(lrs[i]);
  last_lrs_ = lrs;
}

std::vector<double> LRScheduler::current_lrs() const { return scaled(1); }

std::vector<double> LRScheduler::scaled(double factor) const {
  std::vector<double> lrs;
  for (const OptimizerParamGroup& group : optimizer_.param_groups()) lrs.push_back(group.options().get_lr() * factor);
  return lrs;
}

std::vector<double> LRScheduler::scaled_base(double factor) const {
  std::vector<double> lrs = base_lrs_;
  for (double& lr : lrs) lr *= factor;
  return lrs;
}

// ---- factors
// ---------------------------------------------------------------------------------------------------------

StepLR::StepLR(Optimizer& optimizer, int64_t step_size, double gamma)
    : LRScheduler(optimizer), step_size_(step_size), gamma_(gamma) {
  RUSH_CHECK_VALUE(step_size > 0, "StepLR: the step size must be positive, got ", step_size);
  StepLR::initial_step();
}

std::vector<double> StepLR::get_lrs() {
  return last_epoch_ == 0 || last_epoch_ % step_size_ != 0 ? current_lrs() : scaled(gamma_);
}

std::vector<double> StepLR::get_closed_form_lrs() {
  return scaled_base(std::pow(gamma_, static_cast<double>(last_epoch_ / step_size_)));
}

MultiStepLR::MultiStepLR(Optimizer& optimizer, std::vector<int64_t> milestones, double gamma)
    : LRScheduler(optimizer), milestones_(std::move(milestones)), gamma_(gamma) {
  std::sort(milestones_.begin(), milestones_.end());
  MultiStepLR::initial_step();
}

std::vector<double> MultiStepLR::get_lrs() {
  const auto [first, last] = std::equal_range(milestones_.begin(), milestones_.end(), last_epoch_);
  return first == last ? current_lrs() : scaled(std::pow(gamma_, static_cast<double>(last - first)));
}

std::vector<double> MultiStepLR::get_closed_form_lrs() {
  const auto passed = std::upper_bound(milestones_.begin(), milestones_.end(), last_epoch_) - milestones_.begin();
  return scaled_base(std::pow(gamma_, static_cast<double>(passed)));
}

ExponentialLR::ExponentialLR(Optimizer& optimizer, double gamma) : LRScheduler(optimizer), gamma_(gamma) {
  ExponentialLR::initial_step();
}

std::vector<double> ExponentialLR::get_lrs() { return is_initial_ ? current_lrs() : scaled(gamma_); }

std::vector<double> ExponentialLR::get_closed_form_lrs() {
  return scaled_base(std::pow(gamma_, static_cast<double>(last_epoch_)));
}

LinearLR::LinearLR(Optimizer& optimizer, double start_factor, double end_factor, int64_t total_iters)
    : LRScheduler(optimizer), start_factor_(start_factor), end_factor_(end_factor), total_iters_(total_iters) {
  RUSH_CHECK_VALUE(start_factor > 0 && start_factor <= 1, "LinearLR: the start factor must be in (0, 1], got ",
                   start_factor);
  RUSH_CHECK_VALUE(end_factor >= 0 && end_factor <= 1, "LinearLR: the end factor must be in [0, 1], got ", end_factor);
  RUSH_CHECK_VALUE(total_iters > 0, "LinearLR: the number of iterations must be positive, got ", total_iters);
  LinearLR::initial_step();
}

std::vector<double> LinearLR::get_lrs() {
  if (last_epoch_ == 0) return scaled(start_factor_);
  if (is_initial_ || last_epoch_ > total_iters_) return current_lrs();
  const double rise = end_factor_ - start_factor_;
  return scaled(
      1 + rise / (static_cast<double>(total_iters_) * start_factor_ + static_cast<double>(last_epoch_ - 1) * rise));
}

std::vector<double> LinearLR::get_closed_form_lrs() {
  const auto steps = static_cast<double>(std::min(total_iters_, last_epoch_));
  return scaled_base(start_factor_ + (end_factor_ - start_factor_) * steps / static_cast<double>(total_iters_));
}

LambdaLR::LambdaLR(Optimizer& optimizer, Lambda lr_lambda)
    : LambdaLR(optimizer, std::vector<Lambda>(optimizer.param_groups().size(), std::move(lr_lambda))) {}

LambdaLR::LambdaLR(Optimizer& optimizer, std::vector<Lambda> lr_lambdas)
    : LRScheduler(optimizer), lambdas_(std::move(lr_lambdas)) {
  RUSH_CHECK_VALUE(lambdas_.size() == base_lrs_.size(), "LambdaLR: expected ", base_lrs_.size(),
                   " functions, one for each parameter group, got ", lambdas_.size());
  LambdaLR::initial_step();
}

std::vector<double> LambdaLR::get_lrs() {
  std::vector<double> lrs = base_lrs_;
  for (size_t i = 0; i < lrs.size(); ++i) lrs[i] *= lambdas_[i](last_epoch_);
  return lrs;
}

// ---- cosine
// ----------------------------------------------------------------------------------------------------------

CosineAnnealingLR::CosineAnnealingLR(Optimizer& optimizer, int64_t T_max, double eta_min)
    : LRScheduler(optimizer), T_max_(T_max), eta_min_(eta_min) {
  RUSH_CHECK_VALUE(T_max > 0, "CosineAnnealingLR: T_max must be positive, got ", T_max);
  CosineAnnealingLR::initial_step();
}

std::vector<double> CosineAnnealingLR::get_lrs() {
  std::vector<double> lrs = current_lrs();
  if (is_initial_) return lrs;
  const auto period = static_cast<double>(T_max_), epoch = static_cast<double>(last_epoch_);
  const bool turns = (last_epoch_ - 1 - T_max_) % (2 * T_max_) == 0;  // the rate before was eta_min, the ratio 0 / 0
  for (size_t i = 0; i < lrs.size(); ++i) {
    if (turns) {
      lrs[i] += (base_lrs_[i] - eta_min_) * (1 - std::cos(pi / period)) / 2;
    } else {
      lrs[i] = (1 + std::cos(pi * epoch / period)) / (1 + std::cos(pi * (epoch - 1) / period)) * (lrs[i] - eta_min_) +
               eta_min_;
    }
  }
  return lrs;
}

std::vector<double> CosineAnnealingLR::get_closed_form_lrs() {
  std::vector<double> lrs = base_lrs_;
  const double height = (1 + std::cos(pi * static_cast<double>(last_epoch_) / static_cast<double>(T_max_))) / 2;
  for (double& lr : lrs) lr = eta_min_ + (lr - eta_min_) * height;
  return lrs;
}

// ---- one cycle
// -------------------------------------------------------------------------------------------------------

OneCycleLR::OneCycleLR(Optimizer& optimizer, OneCycleLROptions options)
    : LRScheduler(optimizer), options_(std::move(options)) {
  auto& o = options_;
  auto& groups = optimizer.param_groups();
  RUSH_CHECK_VALUE(o.total_steps() > 0, "OneCycleLR: the number of steps must be positive, got ", o.total_steps());
  RUSH_CHECK_VALUE(o.pct_start() >= 0 && o.pct_start() <= 1, "OneCycleLR: pct_start must be in [0, 1], got ",
                   o.pct_start());
  if (o.max_lr().size() == 1) o.max_lr() = std::vector<double>(groups.size(), o.max_lr()[0]);
  RUSH_CHECK_VALUE(o.max_lr().size() == groups.size(), "OneCycleLR: expected ", groups.size(),
                   " maximal rates, one for each parameter group, got ", o.max_lr().size());
  RUSH_CHECK_VALUE(!o.cycle_momentum() || optimizer.defaults().get_momentum(),
                   "OneCycleLR: the optimizer has no momentum to cycle; pass cycle_momentum(false)");

  const auto total = static_cast<double>(o.total_steps());
  phases_.push_back({o.pct_start() * total - 1, Level::Initial, Level::Max, true, false});
  if (o.three_phase()) {
    phases_.push_back({2 * o.pct_start() * total - 2, Level::Max, Level::Initial, false, true});
    phases_.push_back({total - 1, Level::Initial, Level::Min, true, true});
  } else {
    phases_.push_back({total - 1, Level::Max, Level::Min, false, true});
  }
  for (size_t i = 0; i < groups.size(); ++i) {
    base_lrs_[i] = o.max_lr()[i] / o.div_factor();
    groups[i].initial_lr() = base_lrs_[i];
  }
  OneCycleLR::initial_step();
}

double OneCycleLR::level(size_t group, Level level) const {
  switch (level) {
    case Level::Initial: return base_lrs_[group];
    case Level::Max: return options_.max_lr()[group];
    default: return base_lrs_[group] / options_.final_div_factor();
  }
}

double OneCycleLR::anneal(double start, double end, double part) const {
  if (options_.anneal_strategy() == OneCycleLROptions::Anneal::Linear) return (end - start) * part + start;
  return end + (start - end) / 2 * (std::cos(pi * part) + 1);
}

std::vector<double> OneCycleLR::get_lrs() {
  RUSH_CHECK_VALUE(last_epoch_ <= options_.total_steps(), "OneCycleLR: step ", last_epoch_, " of a cycle of ",
                   options_.total_steps());
  const auto now = static_cast<double>(last_epoch_);
  size_t current = 0;
  double start_step = 0;
  while (current + 1 < phases_.size() && now > phases_[current].end_step) start_step = phases_[current++].end_step;
  const Phase& phase = phases_[current];
  const double part = (now - start_step) / (phase.end_step - start_step);

  std::vector<double> lrs;
  for (size_t i = 0; i < base_lrs_.size(); ++i) {
    lrs.push_back(anneal(level(i, phase.start), level(i, phase.end), part));
    if (!options_.cycle_momentum()) continue;
    const auto momentum = [&](bool high) { return high ? options_.max_momentum() : options_.base_momentum(); };
    optimizer_.param_groups()[i].options().set_momentum(
        anneal(momentum(phase.momentum_starts_high), momentum(phase.momentum_ends_high), part));
  }
  return lrs;
}

// ---- one after another
// -----------------------------------------------------------------------------------------------

SequentialLR::SequentialLR(Optimizer& optimizer, std::vector<std::shared_ptr<LRScheduler>> schedulers,
                           std::vector<int64_t> milestones)
    : LRScheduler(optimizer), schedulers_(std::move(schedulers)), milestones_(std::move(milestones)) {
  RUSH_CHECK_VALUE(!schedulers_.empty() && milestones_.size() + 1 == schedulers_.size(), "SequentialLR: got ",
                   schedulers_.size(), " schedulers and ", milestones_.size(),
                   " milestones; there has to be one scheduler more");
  RUSH_CHECK_VALUE(std::is_sorted(milestones_.begin(), milestones_.end()),
                   "SequentialLR: the milestones must not decrease, got ", milestones_);
  for (const auto& scheduler : schedulers_) {
    RUSH_CHECK_VALUE(scheduler && &scheduler->optimizer_ == &optimizer,
                     "SequentialLR: all schedulers must belong to the same optimizer");
  }
  SequentialLR::initial_step();
}

void SequentialLR::initial_step() {
  // The constructors of all schedulers have set the rates of their epoch 0; only the first one's count.
  for (OptimizerParamGroup& group : optimizer_.param_groups()) group.options().set_lr(*group.initial_lr());
  if (last_epoch_ < 0) {
    for (const auto& scheduler : schedulers_) scheduler->undo_initial_step();
  }
  last_epoch_ = 0;
  schedulers_[0]->initial_step();
  last_lrs_ = schedulers_[0]->get_last_lr();
}

void SequentialLR::undo_initial_step() {
  last_epoch_ = -1;
  schedulers_[0]->undo_initial_step();
}

void SequentialLR::jump_to(int64_t epoch) {
  last_epoch_ = epoch;
  schedulers_[0]->jump_to(epoch);
  last_lrs_ = schedulers_[0]->get_last_lr();
}

void SequentialLR::step() {
  ++last_epoch_;
  const auto passed = std::upper_bound(milestones_.begin(), milestones_.end(), last_epoch_) - milestones_.begin();
  const auto current = static_cast<size_t>(passed);
  LRScheduler& scheduler = *schedulers_[current];
  if (current > 0 && milestones_[current - 1] == last_epoch_) {
    scheduler.jump_to(0);
  } else {
    scheduler.step();
  }
  last_lrs_ = scheduler.get_last_lr();
}

}  // namespace rush::optim
