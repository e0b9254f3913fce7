#include "optim/schedules/lr_scheduler.h"

#include <algorithm>

#include "autograd/compile/tracer.h"
#include "core/error/warning.h"

namespace rush::optim {

LRScheduler::LRScheduler(Optimizer& optimizer, bool starts_over) : optimizer_(optimizer) {
  if (!starts_over) return;
  for (OptimizerParamGroup& group : optimizer.param_groups()) {
    if (!group.initial_lr()) group.initial_lr() = group.options().get_lr();
    base_lrs_.push_back(*group.initial_lr());
  }
}

void LRScheduler::start() {
  check();
  initial_step();
}

void LRScheduler::initial_step() {
  is_initial_ = true;
  ++last_epoch_;
  set_lrs(get_lrs());
  is_initial_ = false;
}

void LRScheduler::step() {
  if (compiler::host_call("scheduler.step", [this] { step(); })) return;
  if (last_epoch_ == 0 && !optimizer_.was_stepped()) {
    RUSH_WARN_ONCE_PER_CALLER(
        "LRScheduler: step() is called before the optimizer's step(), so that the first rate is never used; call the "
        "optimizer's first, or, where it is a class of the program's own, begin its step() with evaluate(closure)");
  }
  ++last_epoch_;
  set_lrs(get_lrs());
  ++step_count_;
}

void LRScheduler::jump_to(int64_t epoch) {
  last_epoch_ = epoch;
  set_lrs(get_closed_form_lrs());
}

static void check_groups(const Optimizer& optimizer, size_t expected) {
  const size_t groups = optimizer.param_groups().size();
  RUSH_CHECK(groups == expected, "LRScheduler: the optimizer has ", groups,
             " parameter groups, the schedule was made for ", expected);
}

void LRScheduler::set_lrs(const std::vector<double>& lrs) {
  check_groups(optimizer_, lrs.size());
  auto& groups = optimizer_.param_groups();
  for (size_t i = 0; i < groups.size(); ++i) groups[i].options().set_lr(lrs[i]);
  last_lrs_ = lrs;
}

const std::vector<double>& LRScheduler::base_lrs() const {
  check_groups(optimizer_, base_lrs_.size());
  return base_lrs_;
}

std::vector<double> LRScheduler::current_lrs() const { return scaled(1); }

std::vector<double> LRScheduler::scaled(double factor) const {
  std::vector<double> lrs;
  for (const OptimizerParamGroup& group : optimizer_.param_groups()) lrs.push_back(group.options().get_lr() * factor);
  return lrs;
}

std::vector<double> LRScheduler::scaled_base(double factor) const {
  std::vector<double> lrs = base_lrs();
  for (double& lr : lrs) lr *= factor;
  return lrs;
}

void LRScheduler::visit(StateFields& fields) {
  fields("last_epoch", last_epoch_);
  step_count_ = static_cast<unsigned>(std::max<int64_t>(last_epoch_, 0));
  fields.fixed("base_lrs", base_lrs_);
  fields.fixed("last_lrs", last_lrs_);
}

StateDict LRScheduler::state_dict() const {
  StateDict dict("state");
  StateFields fields(&dict);
  const_cast<LRScheduler&>(*this).visit(fields);  // writing changes no member
  return dict;
}

void LRScheduler::load_state_dict(const StateDict& dict) {
  const StateDict before = state_dict();
  try {
    StateFields fields(dict);
    visit(fields);
    fields.finish("LRScheduler::load_state_dict");
    RUSH_CHECK_VALUE(last_epoch_ >= 0, "LRScheduler::load_state_dict: last_epoch must be at least 0, got ",
                     last_epoch_);
    check();
  } catch (...) {
    StateFields fields(before);
    visit(fields);
    throw;
  }
}

}  // namespace rush::optim
