// ModuleScope: the call of a module that a thread is in, which errors and warnings name.
#pragma once
#include <atomic>

#include "core/error/error_context.h"
#include "core/macros.h"

namespace rush::nn {

class Module;

// Note [The module of an error]
// An error or a warning made in a ModuleScope says "in Net.encoder.layers.2.fc1": the names by which parents registered
// the module, from the class of the outermost one. Every forward of this library has such a scope, and so has every
// call through a holder (`net(x)`) or a Sequential, whatever the module's class. `net->forward(x)` of a class of your
// own is a plain call that nothing sees; inside it, the library's modules still know where they are registered. A class
// that wants to be named there too begins its forward with `const ModuleScope scope(*this);`.

// Note [Forward observers]
// A module may have an observer, which is told where its forward calls begin and end: the ends of its ModuleScopes.
// Sharded modules gather their parameters there. A module's scopes nest where both a holder and the forward itself open
// one. Without any observer in the program a scope pays for reading one flag.

/// Sees the forward calls of a module: Module::set_forward_observer.
class ForwardObserver {
 public:
  virtual ~ForwardObserver() = default;
  virtual void begin_forward() = 0;         // where it throws, there is no call, and no end of one
  virtual void end_forward() noexcept = 0;  // of the call that begin_forward began
};

class ModuleScope : private ErrorContext {
 public:
  explicit ModuleScope(const Module& module) : ErrorContext(&describe, &module) {
    if (RUSH_UNLIKELY(has_observers_.load(std::memory_order_relaxed))) begin(module);
  }
  ~ModuleScope() {
    if (RUSH_UNLIKELY(observer_)) observer_->end_forward();
  }

 private:
  friend class Module;

  static std::string describe(const void* module);
  void begin(const Module& module);

  static inline constinit std::atomic<bool> has_observers_{false};  // or had; in the whole program
  ForwardObserver* observer_ = nullptr;
};

}  // namespace rush::nn
