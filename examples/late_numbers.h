// Numbers that a device computes, read when it is done with them anyway.
#pragma once

#include <deque>
#include <optional>

#include "core/device/event.h"
#include "core/tensor.h"

namespace examples {

/// A loop that asks for each step's loss waits for the device at each step, which then waits for the loop. Instead the
/// numbers of a step are on their way to the host while the next steps are given to the device. On the CPU nothing is
/// ever late.
class LateNumbers {
 public:
  /// `lag`: how many steps the numbers may be late.
  explicit LateNumbers(size_t lag = 8) : lag_(lag) {}

  /// Begins to copy a step's numbers, which may be overwritten after the call. Waits for nothing.
  void push(const rush::Tensor& numbers);
  /// The oldest numbers, as float64 on the CPU, if there are some that are late enough, or any where `all` are wanted.
  std::optional<rush::Tensor> pop(bool all = false);

 private:
  struct Copy {
    rush::Tensor on_host;
    rush::Event done;
  };
  size_t lag_;
  std::deque<Copy> on_their_way_;
};

}  // namespace examples
