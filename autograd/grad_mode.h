// Guards that decide whether this thread records what it computes.
#pragma once
#include "core/dispatch/key.h"

namespace rush {

/// Whether this thread records its calls. AutoGradMode sets it for a scope.
struct GradMode {
  static bool is_enabled() { return dispatch_state.grad_mode; }  // true at first
  static void set_enabled(bool enabled);                         // until it is called again
};

/// Sets grad mode for a scope.
class AutoGradMode {
 public:
  explicit AutoGradMode(bool enabled) { GradMode::set_enabled(enabled); }

 private:
  DispatchStateGuard restore_;
};

/// Nothing in the scope is recorded; results do not require a gradient. torch::NoGradGuard.
class NoGradGuard : public AutoGradMode {
 public:
  NoGradGuard() : AutoGradMode(false) {}
};

/// Undoes an enclosing NoGradGuard.
class EnableGradGuard : public AutoGradMode {
 public:
  EnableGradGuard() : AutoGradMode(true) {}
};

/// As NoGradGuard, and tensors made in the scope can never take part in a recorded computation: see Note [Inference
/// tensors]. InferenceMode(false) undoes an enclosing one. c10::InferenceMode.
class InferenceMode : public AutoGradMode {
 public:
  explicit InferenceMode(bool enabled = true) : AutoGradMode(!enabled) { dispatch_state.inference_mode = enabled; }
  static bool is_enabled() { return dispatch_state.inference_mode; }  // on this thread
};

}  // namespace rush
