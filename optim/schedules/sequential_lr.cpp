#include "optim/schedules/sequential_lr.h"

#include <algorithm>

#include "autograd/compile/tracer.h"
#include "optim/schedules/reduce_on_plateau.h"

namespace rush::optim {

SequentialLR::SequentialLR(Optimizer& optimizer, std::vector<std::shared_ptr<LRScheduler>> schedulers,
                           std::vector<int64_t> milestones)
    : LRScheduler(optimizer), schedulers_(std::move(schedulers)), milestones_(std::move(milestones)) {
  RUSH_CHECK_VALUE(!schedulers_.empty() && milestones_.size() + 1 == schedulers_.size(), "SequentialLR: got ",
                   schedulers_.size(), " schedulers and ", milestones_.size(),
                   " milestones; there has to be one scheduler more");
  for (const auto& scheduler : schedulers_) {
    RUSH_CHECK_VALUE(scheduler && &scheduler->optimizer_ == &optimizer,
                     "SequentialLR: all schedulers must belong to the same optimizer");
    RUSH_CHECK_VALUE(!dynamic_cast<const ReduceLROnPlateau*>(scheduler.get()),
                     "SequentialLR: cannot step a ReduceLROnPlateau, which needs a metric");
  }
  SequentialLR::check();
  // Only here: a sequence that is itself the first of another starts twice.
  for (const auto& scheduler : schedulers_) scheduler->undo_initial_step();
  SequentialLR::initial_step();
}

void SequentialLR::check() const {
  RUSH_CHECK_VALUE(std::is_sorted(milestones_.begin(), milestones_.end()),
                   "SequentialLR: the milestones must not decrease, got ", milestones_);
  for (const auto& scheduler : schedulers_) scheduler->check();
}

void SequentialLR::visit(StateFields& fields) {
  LRScheduler::visit(fields);
  fields.fixed("milestones", milestones_);
  for (size_t i = 0; i < schedulers_.size(); ++i) {
    const StateFields::Scope scope(fields, str("schedulers.", i, "."));
    schedulers_[i]->visit(fields);
  }
}

LRScheduler& SequentialLR::at(int64_t epoch) const {
  const auto passed = std::upper_bound(milestones_.begin(), milestones_.end(), epoch) - milestones_.begin();
  return *schedulers_[static_cast<size_t>(passed)];
}

void SequentialLR::initial_step() {
  // The constructors of all schedulers have set the rates of their epoch 0; only those of the one that runs then count.
  for (OptimizerParamGroup& group : optimizer_.param_groups()) group.options().set_lr(*group.initial_lr());
  last_epoch_ = 0;
  at(0).initial_step();
  last_lrs_ = at(0).get_last_lr();
}

void SequentialLR::undo_initial_step() {
  last_epoch_ = -1;
  at(0).undo_initial_step();
}

void SequentialLR::jump_to(int64_t epoch) {
  last_epoch_ = epoch;
  at(epoch).jump_to(epoch);
  last_lrs_ = at(epoch).get_last_lr();
}

void SequentialLR::step() {
  if (compiler::host_call("scheduler.step", [this] { step(); })) return;
  ++last_epoch_;
  LRScheduler& scheduler = at(last_epoch_);
  if (std::binary_search(milestones_.begin(), milestones_.end(), last_epoch_)) {
    scheduler.jump_to(0);
  } else {
    scheduler.step();
  }
  last_lrs_ = scheduler.get_last_lr();
}

}  // namespace rush::optim
