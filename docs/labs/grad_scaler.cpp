// Lab 14, loss scaling: this file takes the place of optim/amp/grad_scaler.cpp. What each function has to do stands in
// optim/amp/grad_scaler.h and docs/labs/grad_scaler.md. Write them in this order; `./rush lab 14` checks them in this
// order.
#include "optim/amp/grad_scaler.h"

#include <cmath>

#include "autograd/grad_mode.h"
#include "core/ops/factory/factories.h"
#include "core/ops/optim/amp.h"
#include "core/ops/pointwise/binary.h"
#include "core/ops/pointwise/unary.h"
#include "optim/amp/gradient_lists.h"

namespace rush::amp {

// `outputs` times scale_, which is undefined before the first call: a float32 on the outputs' device.
Tensor GradScaler::scale(const Tensor& outputs) {
  RUSH_THROW(NotImplementedError, "begin here: make scale_ of ", options_.init_scale(),
             " and growth_tracker_, an int32, of ", initial_tracker_,
             " if they are undefined; return outputs of sizes ", outputs.sizes(), " times scale_");
}

// Divides all gradients by the scale, and keeps in states_[&optimizer] whether all were finite.
void GradScaler::unscale_(optim::Optimizer& optimizer) {
  native::WriteBack copies;
  RUSH_THROW(NotImplementedError, "next: multiply the gradients in the ", gradient_lists(optimizer, copies).size(),
             " lists of gradient_lists(optimizer, copies) by 1 / scale, and note in found_inf whether all were finite");
}

// optimizer.step(), unless a gradient is not finite.
Tensor GradScaler::step(optim::Optimizer& optimizer, const optim::Optimizer::LossClosure& closure) {
  if (!is_enabled()) return optimizer.step(closure);
  RUSH_CHECK(!closure, "GradScaler: step() takes no closure: its loss would have to be scaled too");
  check_started("step");
  RUSH_THROW(NotImplementedError, "next: call unscale_(optimizer) unless that was done, then optimizer.step() or ",
             "optimizer.skip_step(), and keep in last_steps_ which it was; there are ", states_.size(), " states");
}

// This one is written. A capturable optimiser takes its step this way: the device then decides, by `found_inf`.
Tensor GradScaler::step_on_device(optim::Optimizer& optimizer, const Tensor& found_inf) {
  struct Reset {
    optim::Optimizer& optimizer;
    ~Reset() { optimizer.set_found_inf(Tensor()); }
  } reset{optimizer};
  optimizer.set_found_inf(found_inf);
  return optimizer.step();
}

// Whether the last step() with the optimiser was skipped; false if there was none.
bool GradScaler::step_was_skipped(const optim::Optimizer& optimizer) const {
  RUSH_THROW(NotImplementedError, "next: find &optimizer among the ", last_steps_.size(), " in last_steps_; lr is ",
             optimizer.defaults().get_lr());
}

// Changes scale_ and growth_tracker_ by what all optimisers have found, and begins a new iteration.
void GradScaler::update() {
  if (!is_enabled()) return;
  check_started("update");
  RUSH_THROW(NotImplementedError, "next: make the scale ", get_scale(), " smaller by ", options_.backoff_factor(),
             " if one of the ", states_.size(),
             " optimisers has found what is not finite; else count, and let it grow");
}

// The scale, the options and the count of good steps, under PyTorch's names.
optim::StateDict GradScaler::state_dict() const {
  RUSH_THROW(NotImplementedError, "next: return saved_state() of a struct with the scale ", get_scale(),
             ", three options and the count ", growth_tracker());
}

void GradScaler::load_state_dict(const optim::StateDict& dict) {
  RUSH_THROW(NotImplementedError, "last: read the numbers from the dict, which is ", dict.is_empty() ? "" : "not ",
             "empty, check them, and set options_, initial_tracker_ and, if they are defined, the two tensors");
}

}  // namespace rush::amp
