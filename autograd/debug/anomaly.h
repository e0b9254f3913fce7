// Anomaly mode: finds the operator whose derivative computes a NaN, and the forward call that it belongs to.
#pragma once
#include <atomic>
#include <memory>
#include <string>
#include <string_view>

#include "autograd/node.h"
#include "core/debug/stack_trace.h"

namespace rush {

/// What made a node, kept by the node while anomaly mode is on.
struct ForwardCall {
  std::string what;  // "aten::sqrt"
  StackTrace stack;
  std::shared_ptr<const ForwardCall> cause;  // the forward call in whose derivative this one happened: double backward

  /// One line, from the caller of the operator outwards: "aten::sqrt called by loss(...) (program+0x...) < main ...".
  std::string describe() const;
};

namespace autograd {

/// While it is on, every recorded call remembers its stack, and a backward pass throws Error as soon as a derivative
/// returns a NaN, or fails: the message names the derivative, the operator and the stack of its forward call, which is
/// what PyTorch's detect_anomaly prints. One switch for all threads. It costs a stack walk for each recorded call and a
/// scan of each gradient, so it is for looking for the fault, not for training.
class AnomalyMode {
 public:
  /// Whether it is on, and whether a NaN is an error while it is. set_enabled sets both, for all threads.
  static bool is_enabled() { return enabled_.load(std::memory_order_relaxed); }
  static bool should_check_nan() { return check_nan_.load(std::memory_order_relaxed); }
  static void set_enabled(bool enabled, bool check_nan = true) {
    enabled_ = enabled;
    check_nan_ = check_nan;
  }

 private:
  static inline std::atomic<bool> enabled_{false};
  static inline std::atomic<bool> check_nan_{true};
};

/// Anomaly mode for a scope. torch::autograd::DetectAnomalyGuard.
class DetectAnomalyGuard {
 public:
  explicit DetectAnomalyGuard(bool check_nan = true) { AnomalyMode::set_enabled(true, check_nan); }
  ~DetectAnomalyGuard() { AnomalyMode::set_enabled(enabled_, check_nan_); }
  DetectAnomalyGuard(const DetectAnomalyGuard&) = delete;
  DetectAnomalyGuard& operator=(const DetectAnomalyGuard&) = delete;

 private:
  bool enabled_ = AnomalyMode::is_enabled();
  bool check_nan_ = AnomalyMode::should_check_nan();
};

/// A call of `what` by this thread: its stack, and the call whose derivative it is a part of, where it is one.
std::shared_ptr<const ForwardCall> capture_forward_call(std::string_view what);

/// Gives a node that has just been made its forward call, if anomaly mode is on.
inline void remember_forward_call(Node& node, std::string_view what) {
  if (AnomalyMode::is_enabled()) node.set_forward_call(capture_forward_call(what));
}

/// node.apply(grads), looking for NaNs in the result and telling errors where the node comes from.
Tensors apply_watched(Node& node, const Tensors& grads);

}  // namespace autograd
}  // namespace rush
