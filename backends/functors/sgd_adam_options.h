// The options of SGD's and Adam's rules: see Note [An optimiser from a description].
#pragma once
#include "core/macros.h"
#include "core/ops/optim/optim.h"

namespace rush {

namespace detail {
template <class... Members>
RUSH_HD void take_in_order(const double* numbers, Members&... members) {
  ((members = *numbers++), ...);
}
}  // namespace detail

struct SgdStep {
  RUSH_STEP("SGD", "sgd")
  static constexpr size_t kNumbers = 4, kFlags = 3, kStates = 1;
  double lr, momentum, dampening, weight_decay;
  bool nesterov, maximize;
  bool first;  // the momentum buffers are uninitialised
  constexpr bool uses(size_t) const { return momentum != 0; }
  RUSH_HD void take(const double* numbers) { detail::take_in_order(numbers, lr, momentum, dampening, weight_decay); }
};

struct AdamStep {
  RUSH_STEP("Adam", "adam")
  static constexpr size_t kNumbers = 5, kFlags = 3, kStates = 3;
  double lr, beta1, beta2, eps, weight_decay;
  bool amsgrad, maximize;
  bool decoupled;  // AdamW: the weights decay by themselves, not through the gradient
  constexpr bool uses(size_t state) const { return state < 2 || amsgrad; }
  RUSH_HD void take(const double* numbers) { detail::take_in_order(numbers, lr, beta1, beta2, eps, weight_decay); }
};

}  // namespace rush
