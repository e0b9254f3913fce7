// Kernels with state, for operators that are made while a program runs.
#pragma once
#include <array>
#include <atomic>
#include <memory>
#include <utility>

#include "core/error/error.h"

namespace rush {

// Note [Kernels with state]
// A kernel is a plain function pointer, which a call jumps through; what an operator of the library knows beside its
// arguments stands in its code. An operator that a program describes at run time, by the source of its kernel or by a
// lambda that is its derivative, has that in an object. For each signature there are kMost functions; number i calls
// object number i. An object is never freed, as operators are not.
template <class Signature>
class ClosureKernel;

template <class R, class... Args>
class ClosureKernel<R(Args...)> {
 public:
  using Fn = R (*)(Args...);
  static constexpr size_t kMost = 64;

  virtual ~ClosureKernel() = default;
  virtual R call(Args... args) = 0;

  // The function that calls `kernel`. From any thread. Throws ValueError where kMost of this signature are taken.
  static Fn function_of(std::unique_ptr<ClosureKernel> kernel) {
    const size_t slot = taken.fetch_add(1);
    RUSH_CHECK_VALUE(slot < kMost, "a program can make ", kMost, " kernels of one signature");
    objects[slot] = kernel.release();
    return functions(std::make_index_sequence<kMost>())[slot];
  }

 private:
  template <size_t slot>
  static R function(Args... args) {
    return objects[slot]->call(std::forward<Args>(args)...);
  }
  template <size_t... slots>
  static const std::array<Fn, kMost>& functions(std::index_sequence<slots...>) {
    static constexpr std::array<Fn, kMost> all = {&function<slots>...};
    return all;
  }

  static inline std::atomic<size_t> taken = 0;
  static inline ClosureKernel* objects[kMost] = {};
};

}  // namespace rush
