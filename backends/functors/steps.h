// The options of the optimisers' rules.
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

// Note [An optimiser from a description]
// The description of an optimiser with an element-wise step has two halves. This folder has its rule: a Step struct
// with its options, numbers first, in the order of the Options class, here; and in optim.h a functor that changes one
// element of the parameter and of each state, and a row of `for_each_step_rule`. optim/ has its Options and its state,
// which name their members once, and the class, a DescribedOptimizer (optim/step_optimizer.h). The operator, the
// kernels of every backend, plain and capturable, the checks, the state dict and the parameter groups follow from
// these. A step that needs reductions or products of matrices has no functor: its Step struct has a function `compose`,
// which calls tensor operators, and it is listed in `for_each_composed_step` (optim/optim.h).
//
// kStates is the number of states. `uses` says which of them the options need; without it, all are needed. The
// functor's constructor takes the Step struct and, if it has such parameters, the number of the step and the product of
// NAdam's momenta. `take` reads the numbers from a list: Note [Capturable optimisers].
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

struct AdadeltaStep {
  RUSH_STEP("Adadelta", "adadelta")
  static constexpr size_t kNumbers = 4, kFlags = 1, kStates = 2;
  double lr, rho, eps, weight_decay;
  bool maximize;
  RUSH_HD void take(const double* numbers) { detail::take_in_order(numbers, lr, rho, eps, weight_decay); }
};

struct RmsPropStep {
  RUSH_STEP("RMSprop", "rmsprop")
  static constexpr size_t kNumbers = 5, kFlags = 2, kStates = 3;
  double lr, alpha, eps, weight_decay, momentum;
  bool centered, maximize;
  constexpr bool uses(size_t state) const { return state == 0 || (state == 1 ? momentum > 0 : centered); }
  RUSH_HD void take(const double* numbers) { detail::take_in_order(numbers, lr, alpha, eps, weight_decay, momentum); }
};

struct AdagradStep {
  RUSH_STEP("Adagrad", "adagrad")
  static constexpr size_t kNumbers = 5, kFlags = 1, kStates = 1;
  double lr, lr_decay, weight_decay, initial_accumulator_value, eps;
  bool maximize;
  RUSH_HD void take(const double* numbers) {
    detail::take_in_order(numbers, lr, lr_decay, weight_decay, initial_accumulator_value, eps);
  }
};

struct NAdamStep {
  RUSH_STEP("NAdam", "nadam")
  static constexpr size_t kNumbers = 6, kFlags = 2, kStates = 2;
  double lr, beta1, beta2, eps, weight_decay, momentum_decay;
  bool decoupled, maximize;
  RUSH_HD void take(const double* numbers) {
    detail::take_in_order(numbers, lr, beta1, beta2, eps, weight_decay, momentum_decay);
  }
};

struct RAdamStep {
  RUSH_STEP("RAdam", "radam")
  static constexpr size_t kNumbers = 5, kFlags = 2, kStates = 2;
  double lr, beta1, beta2, eps, weight_decay;
  bool decoupled, maximize;
  RUSH_HD void take(const double* numbers) { detail::take_in_order(numbers, lr, beta1, beta2, eps, weight_decay); }
};

struct AdamaxStep {
  RUSH_STEP("Adamax", "adamax")
  static constexpr size_t kNumbers = 5, kFlags = 1, kStates = 2;
  double lr, beta1, beta2, eps, weight_decay;
  bool maximize;
  RUSH_HD void take(const double* numbers) { detail::take_in_order(numbers, lr, beta1, beta2, eps, weight_decay); }
};

struct AsgdStep {
  RUSH_STEP("ASGD", "asgd")
  static constexpr size_t kNumbers = 5, kFlags = 1, kStates = 1;
  double lr, lambd, alpha, t0, weight_decay;
  bool maximize;
  RUSH_HD void take(const double* numbers) { detail::take_in_order(numbers, lr, lambd, alpha, t0, weight_decay); }
};

struct RpropStep {
  RUSH_STEP("Rprop", "rprop")
  static constexpr size_t kNumbers = 5, kFlags = 1, kStates = 2;
  double lr, eta_minus, eta_plus, step_size_min, step_size_max;
  bool maximize;
  RUSH_HD void take(const double* numbers) {
    detail::take_in_order(numbers, lr, eta_minus, eta_plus, step_size_min, step_size_max);
  }
};

}  // namespace rush
