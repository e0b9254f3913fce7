// Schedules one after another.
#pragma once
#include <memory>

#include "optim/schedules/lr_scheduler.h"

namespace rush::optim {

/// One schedule after another, each from its beginning when its milestone comes: milestones.size() + 1 schedules of the
/// same optimiser, which this one owns from now on.
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
  void check() const override;
  void visit(StateFields& fields) override;

  // The scheduler that runs in that epoch.
  LRScheduler& at(int64_t epoch) const;

  std::vector<std::shared_ptr<LRScheduler>> schedulers_;
  std::vector<int64_t> milestones_;
};

}  // namespace rush::optim
