#include "optim/schedules/cosine_schedules.h"

#include <cmath>
#include <numbers>

#include "autograd/compile/tracer.h"

namespace rush::optim {

using std::numbers::pi;

CosineAnnealingLR::CosineAnnealingLR(Optimizer& optimizer, int64_t T_max, double eta_min)
    : LRScheduler(optimizer), T_max_(T_max), eta_min_(eta_min) {
  start();
}

void CosineAnnealingLR::check() const {
  RUSH_CHECK_VALUE(T_max_ > 0, "CosineAnnealingLR: T_max must be positive, got ", T_max_);
}

void CosineAnnealingLR::visit(StateFields& fields) {
  LRScheduler::visit(fields);
  fields("T_max", T_max_);
  fields("eta_min", eta_min_);
}

std::vector<double> CosineAnnealingLR::get_lrs() {
  std::vector<double> lrs = current_lrs();
  if (is_initial_) return lrs;
  const std::vector<double>& bases = base_lrs();
  const auto period = static_cast<double>(T_max_), epoch = static_cast<double>(last_epoch_);
  const bool turns = (last_epoch_ - 1 - T_max_) % (2 * T_max_) == 0;  // the rate before was eta_min, the ratio 0 / 0
  for (size_t i = 0; i < lrs.size(); ++i) {
    if (turns) {
      lrs[i] += (bases[i] - eta_min_) * (1 - std::cos(pi / period)) / 2;
    } else {
      lrs[i] = (1 + std::cos(pi * epoch / period)) / (1 + std::cos(pi * (epoch - 1) / period)) * (lrs[i] - eta_min_) +
               eta_min_;
    }
  }
  return lrs;
}

std::vector<double> CosineAnnealingLR::get_closed_form_lrs() {
  std::vector<double> lrs = base_lrs();
  const double height = (1 + std::cos(pi * static_cast<double>(last_epoch_) / static_cast<double>(T_max_))) / 2;
  for (double& lr : lrs) lr = eta_min_ + (lr - eta_min_) * height;
  return lrs;
}

CosineAnnealingWarmRestarts::CosineAnnealingWarmRestarts(Optimizer& optimizer, int64_t T_0, int64_t T_mult,
                                                         double eta_min)
    : LRScheduler(optimizer), T_0_(T_0), T_mult_(T_mult), eta_min_(eta_min), T_i_(static_cast<double>(T_0)) {
  start();
}

void CosineAnnealingWarmRestarts::check() const {
  RUSH_CHECK_VALUE(T_0_ > 0, "CosineAnnealingWarmRestarts: T_0 must be positive, got ", T_0_);
  RUSH_CHECK_VALUE(T_mult_ > 0, "CosineAnnealingWarmRestarts: T_mult must be positive, got ", T_mult_);
  RUSH_CHECK_VALUE(T_i_ > 0 && T_cur_ >= 0, "CosineAnnealingWarmRestarts: epoch ", T_cur_, " of a run of ", T_i_);
}

void CosineAnnealingWarmRestarts::visit(StateFields& fields) {
  LRScheduler::visit(fields);
  fields("T_0", T_0_);
  fields("T_mult", T_mult_);
  fields("eta_min", eta_min_);
  fields("T_i", T_i_);
  fields("T_cur", T_cur_);
}

std::vector<double> CosineAnnealingWarmRestarts::get_lrs() {
  std::vector<double> lrs = base_lrs();
  for (double& lr : lrs) lr = eta_min_ + (lr - eta_min_) * (1 + std::cos(pi * T_cur_ / T_i_)) / 2;
  return lrs;
}

void CosineAnnealingWarmRestarts::step() {
  if (compiler::host_call("scheduler.step", [this] { step(); })) return;
  ++last_epoch_;
  if (++T_cur_ >= T_i_) {
    T_cur_ = std::fmod(T_cur_, T_i_);
    T_i_ *= static_cast<double>(T_mult_);
  }
  set_lrs(get_lrs());
}

void CosineAnnealingWarmRestarts::step(double epoch) {
  RUSH_CHECK_VALUE(epoch >= 0 && epoch <= 0x1p53, "CosineAnnealingWarmRestarts: the epoch must be at least 0, got ",
                   epoch);
  last_epoch_ = static_cast<int64_t>(epoch);
  T_i_ = static_cast<double>(T_0_);
  T_cur_ = T_mult_ == 1 ? std::fmod(epoch, T_i_) : epoch;
  while (T_cur_ >= T_i_) {
    T_cur_ -= T_i_;
    T_i_ *= static_cast<double>(T_mult_);
  }
  set_lrs(get_lrs());
}

OneCycleLR::OneCycleLR(Optimizer& optimizer, OneCycleLROptions options)
    : LRScheduler(optimizer), options_(std::move(options)) {
  auto& groups = optimizer.param_groups();
  if (options_.max_lr().size() == 1) options_.max_lr() = std::vector<double>(groups.size(), options_.max_lr()[0]);
  OneCycleLR::check();
  make_phases();
  for (size_t i = 0; i < groups.size(); ++i) {
    base_lrs_[i] = options_.max_lr()[i] / options_.div_factor();
    groups[i].initial_lr() = base_lrs_[i];
  }
  OneCycleLR::initial_step();
}

void OneCycleLR::check() const {
  const auto& o = options_;
  RUSH_CHECK_VALUE(o.total_steps() > 0, "OneCycleLR: the number of steps must be positive, got ", o.total_steps());
  RUSH_CHECK_VALUE(o.pct_start() >= 0 && o.pct_start() <= 1, "OneCycleLR: pct_start must be in [0, 1], got ",
                   o.pct_start());
  RUSH_CHECK_VALUE(o.div_factor() > 0 && o.final_div_factor() > 0,
                   "OneCycleLR: div_factor and final_div_factor must be positive, got ", o.div_factor(), " and ",
                   o.final_div_factor());
  RUSH_CHECK_VALUE(o.max_lr().size() == base_lrs_.size(), "OneCycleLR: expected ", base_lrs_.size(),
                   " maximal rates, one for each parameter group, got ", o.max_lr().size());
  RUSH_CHECK_VALUE(!o.cycle_momentum() || optimizer_.defaults().get_momentum(),
                   "OneCycleLR: the optimizer has no momentum to cycle; pass cycle_momentum(false)");
}

void OneCycleLR::visit(StateFields& fields) {
  LRScheduler::visit(fields);
  fields.fixed("max_lr", options_.max_lr());
  fields("total_steps", options_.total_steps());
  fields("pct_start", options_.pct_start());
  fields.enumeration("anneal_strategy", options_.anneal_strategy(), 2);
  fields("cycle_momentum", options_.cycle_momentum());
  fields("base_momentum", options_.base_momentum());
  fields("max_momentum", options_.max_momentum());
  fields("div_factor", options_.div_factor());
  fields("final_div_factor", options_.final_div_factor());
  fields("three_phase", options_.three_phase());
  if (fields.reading()) make_phases();
}

void OneCycleLR::make_phases() {
  const auto total = static_cast<double>(options_.total_steps());
  const double rise = options_.pct_start() * total;
  phases_ = {{rise - 1, Level::Initial, Level::Max, true, false}};
  if (options_.three_phase()) {
    phases_.push_back({2 * rise - 2, Level::Max, Level::Initial, false, true});
    phases_.push_back({total - 1, Level::Initial, Level::Min, true, true});
  } else {
    phases_.push_back({total - 1, Level::Max, Level::Min, false, true});
  }
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
  const double length = phase.end_step - start_step;
  const double part = length == 0 ? 1 : (now - start_step) / length;  // PyTorch divides by zero

  std::vector<double> lrs;
  for (size_t i = 0; i < base_lrs().size(); ++i) {
    lrs.push_back(anneal(level(i, phase.start), level(i, phase.end), part));
    if (!options_.cycle_momentum()) continue;
    const auto momentum = [&](bool high) { return high ? options_.max_momentum() : options_.base_momentum(); };
    optimizer_.param_groups()[i].options().set_momentum(
        anneal(momentum(phase.momentum_starts_high), momentum(phase.momentum_ends_high), part));
  }
  return lrs;
}

}  // namespace rush::optim
