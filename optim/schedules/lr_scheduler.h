// Learning-rate schedules. Each sets the rate of every group of an optimiser when it is made, and again at each step(),
// which is called after the optimiser's (once an epoch, or once a batch).
#pragma once
#include <vector>

#include "optim/optimizer.h"

namespace rush::optim {

// Note [Schedules are chainable]
// As in PyTorch, a schedule computes the next rate from the present one wherever it can, so that two schedules of one
// optimiser multiply their effects. The same rate as a function of the epoch alone, get_closed_form_lrs, serves a
// schedule that is entered in the middle (SequentialLR).
class LRScheduler {
 public:
  /// A schedule that `starts_over` computes its rates from those that the groups had when their first one was made.
  explicit LRScheduler(Optimizer& optimizer, bool starts_over = true);
  virtual ~LRScheduler() = default;
  LRScheduler(const LRScheduler&) = delete;
  LRScheduler& operator=(const LRScheduler&) = delete;

  /// Goes on to the next epoch, or batch, and sets the groups' rates. Warns where the optimiser has not stepped before.
  virtual void step();
  /// The rates that were set last, one for each group.
  const std::vector<double>& get_last_lr() const { return last_lrs_; }
  int64_t last_epoch() const { return last_epoch_; }  // 0 until the first step()

  /// Where the schedule stands, and its options except functions, see Note [State dicts]. The optimiser's state dict
  /// holds the rates of its groups; load both.
  StateDict state_dict() const;
  /// Throws ValueError, and changes nothing, unless `dict` has the names and shapes of this schedule's state_dict() and
  /// numbers that it allows; the message lists all that are missing, unexpected or of a wrong shape.
  void load_state_dict(const StateDict& dict);

 protected:
  friend class SequentialLR;

  // The rates for epoch `last_epoch_`, which was just raised by one.
  virtual std::vector<double> get_lrs() = 0;
  virtual std::vector<double> get_closed_form_lrs() { return get_lrs(); }
  // Checks the options and sets the rates of epoch 0; the constructors of derived classes end with it.
  void start();
  virtual void initial_step();
  // Takes back what the constructor's initial_step counted.
  virtual void undo_initial_step() { --last_epoch_; }
  // Goes on from `epoch`, by the closed form.
  virtual void jump_to(int64_t epoch);
  // Throws ValueError on an option outside its range.
  virtual void check() const {}
  // Names what a state dict keeps. Overrides call the base's first.
  virtual void visit(StateFields& fields);

  // The rates that the groups started with. Throws Error when the optimiser has more or fewer groups by now.
  const std::vector<double>& base_lrs() const;
  std::vector<double> current_lrs() const;
  // libtorch's name.
  std::vector<double> get_current_lrs() const { return current_lrs(); }
  // The rates that the groups have now, each times `factor`.
  std::vector<double> scaled(double factor) const;
  // `factor` times the rates that the groups started with.
  std::vector<double> scaled_base(double factor) const;
  void set_lrs(const std::vector<double>& lrs);

  Optimizer& optimizer_;
  std::vector<double> base_lrs_;
  std::vector<double> last_lrs_;
  int64_t last_epoch_ = -1;
  unsigned step_count_ = 0;  // calls of step() so far; libtorch's name
  bool is_initial_ = false;  // inside initial_step
};

}  // namespace rush::optim
