// Automatic mixed precision: within a scope, operators choose the floating dtype that they compute in.
#pragma once
#include <optional>

#include "core/dispatch/key.h"
#include "core/tensor.h"

namespace rush::autocast {

// Note [Autocast]
// Products of matrices and convolutions are several times as fast in 16 bits, and lose nothing by it in training;
// exponentials, norms and losses do. While autocast is on for a device type, calls on its tensors stop at the Autocast
// key, above Autograd, if they are of an operator that core/amp/autocast_table.cpp lists. The kernel there casts the
// arguments (float16, bfloat16 and float32 ones; float64 and integers stay) as the list says, switches autocast off,
// and calls the operator again. The casts are recorded like any other operator, so that gradients arrive at the
// weights in their own dtype. Operators that are not listed take whatever dtype their inputs have.
//
//   rush::optim::SGD optimizer(net->parameters(), 0.1);      // the weights stay in float32
//   rush::amp::GradScaler scaler;                            // only float16 needs one
//   for (...) {
//     optimizer.zero_grad();
//     Tensor loss;
//     {
//       const rush::autocast::Autocast lower(rush::kCUDA, rush::kFloat16);
//       loss = cross_entropy(net(input), target);
//     }
//     scaler.scale(loss).backward();                         // outside: each node computes in its forward call's dtype
//     scaler.step(optimizer);
//     scaler.update();
//   }
//
// The state belongs to the thread; a new thread, such as a DataLoader's, begins with autocast off. The backward pass
// runs in the state of the thread that starts it, and a checkpointed function runs again in the state of its first run.
//
// Note [The cache of casts]
// A weight that is used several times is cast once: casts of float32 leaves that require a gradient are kept until the
// end of the outermost scope. A cast is not used again after its weight was written, nor where a gradient is recorded
// if it was made where none was.

/// Restores this thread's autocast at the end of a scope.
class StateGuard {
 public:
  StateGuard() : outer_(dispatch_state.autocast) {}
  explicit StateGuard(const AutocastState& state);
  ~StateGuard();
  StateGuard(const StateGuard&) = delete;
  StateGuard& operator=(const StateGuard&) = delete;

 private:
  AutocastState outer_;
};

/// Clears the cache at the end of the outermost scope; see Note [The cache of casts].
class CacheScope {
 public:
  CacheScope();
  ~CacheScope();
  CacheScope(const CacheScope&) = delete;
  CacheScope& operator=(const CacheScope&) = delete;
};

/// Sets autocast for a scope, as torch.autocast. Scopes nest; with `enabled` false, what is inside computes in the
/// dtypes of its inputs.
class Autocast {
 public:
  /// `dtype`: float16 or bfloat16; by default what get_autocast_dtype says. `cache`: whether to keep the casts of
  /// weights; by default as outside. Throws ValueError on another dtype or device type.
  explicit Autocast(DeviceType device, std::optional<ScalarType> dtype = std::nullopt, bool enabled = true,
                    std::optional<bool> cache = std::nullopt);

 private:
  StateGuard restore_;
  CacheScope scope_;
};

/// Switches autocast off for all devices until the end of a scope.
class Off {
 public:
  Off();

 private:
  StateGuard restore_;
};

// ---- libtorch's functions, of which the scopes are made. All are about this thread.

/// All device types but meta, which only estimate_memory's programs have: there it means the device of the estimate.
bool is_autocast_available(DeviceType device);
inline bool is_autocast_enabled(DeviceType device, const AutocastState& state = dispatch_state.autocast) {
  return (state.devices >> static_cast<int>(device) & 1) != 0;
}
/// A scope of the dispatch state, such as a NoGradGuard's, takes it back at its end. Throws ValueError on another
/// device type.
void set_autocast_enabled(DeviceType device, bool enabled);
/// What operators are lowered to: bfloat16 on the CPU and float16 on accelerators until it is set. Throws as Autocast
/// does.
ScalarType get_autocast_dtype(DeviceType device);
void set_autocast_dtype(DeviceType device, ScalarType dtype);
inline bool is_autocast_cache_enabled() { return dispatch_state.autocast.cache; }  // casts of weights are kept
inline void set_autocast_cache_enabled(bool enabled) { dispatch_state.autocast.cache = enabled; }
void clear_cache();  // drops the casts that are kept
/// How many casts are kept.
size_t cache_size();
/// The depth of scopes after the call. Leaving the outermost scope clears the cache.
int increment_nesting();
int decrement_nesting();

/// Whether autocast for `device` may cast `t`: a tensor there in float16, bfloat16 or float32.
bool is_eligible(const Tensor& t, DeviceType device);
/// `t` in `dtype` if it is eligible, otherwise `t` itself. From the cache where it may.
Tensor cached_cast(ScalarType dtype, const Tensor& t, DeviceType device);

}  // namespace rush::autocast
