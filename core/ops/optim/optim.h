// The optimisers' steps as kernels: each updates a list of parameters and their state in one pass over memory.
#pragma once
#include <cmath>

#include "core/dispatch/kernel.h"
#include "core/dispatch/op.h"
#include "core/macros.h"
#include "core/tensor.h"

namespace rush {

namespace detail {
template <class... Members>
RUSH_HD void take_in_order(const double* numbers, Members&... members) {
  ((members = *numbers++), ...);
}
}  // namespace detail

// The options of each optimiser, numbers first. `take` takes the numbers from a list, in the order in which they are
// declared: Note [Capturable optimisers].
struct SgdStep {
  static constexpr size_t kNumbers = 4, kFlags = 3;
  double lr, momentum, dampening, weight_decay;
  bool nesterov, maximize;
  bool first;  // the momentum buffers are uninitialised
  RUSH_HD void take(const double* numbers) { detail::take_in_order(numbers, lr, momentum, dampening, weight_decay); }
};

struct AdamStep {
  static constexpr size_t kNumbers = 5, kFlags = 3;
  double lr, beta1, beta2, eps, weight_decay;
  bool amsgrad, maximize;
  bool decoupled;  // AdamW: the weights decay by themselves, not through the gradient
  RUSH_HD void take(const double* numbers) { detail::take_in_order(numbers, lr, beta1, beta2, eps, weight_decay); }
};

struct AdadeltaStep {
  static constexpr size_t kNumbers = 4, kFlags = 1;
  double lr, rho, eps, weight_decay;
  bool maximize;
  RUSH_HD void take(const double* numbers) { detail::take_in_order(numbers, lr, rho, eps, weight_decay); }
};

struct RmsPropStep {
  static constexpr size_t kNumbers = 5, kFlags = 2;
  double lr, alpha, eps, weight_decay, momentum;
  bool centered, maximize;
  RUSH_HD void take(const double* numbers) { detail::take_in_order(numbers, lr, alpha, eps, weight_decay, momentum); }
};

struct AdagradStep {
  static constexpr size_t kNumbers = 4, kFlags = 1;
  double lr, lr_decay, eps, weight_decay;
  bool maximize;
  RUSH_HD void take(const double* numbers) { detail::take_in_order(numbers, lr, lr_decay, eps, weight_decay); }
};

struct NAdamStep {
  static constexpr size_t kNumbers = 6, kFlags = 2;
  double lr, beta1, beta2, eps, weight_decay, momentum_decay;
  bool decoupled, maximize;
  RUSH_HD void take(const double* numbers) {
    detail::take_in_order(numbers, lr, beta1, beta2, eps, weight_decay, momentum_decay);
  }
  // mu: it grows from beta1 / 2 to beta1.
  RUSH_HD double momentum_at(int64_t step) const {
    return beta1 * (1 - 0.5 * std::pow(0.96, static_cast<double>(step) * momentum_decay));
  }
};

struct RAdamStep {
  static constexpr size_t kNumbers = 5, kFlags = 2;
  double lr, beta1, beta2, eps, weight_decay;
  bool decoupled, maximize;
  RUSH_HD void take(const double* numbers) { detail::take_in_order(numbers, lr, beta1, beta2, eps, weight_decay); }
};

// What a capturable step counts and reads on the device: Note [Capturable optimisers] in optim/graphs/device_numbers.h.
struct DeviceStep {
  TensorList steps;         // one int64 for each parameter, how many steps it has taken, which is counted up
  TensorList mu_products;   // NAdam's: one float64 for each, which is multiplied by the step's momentum
  const Tensor& numbers;    // float64, in the order in which the step lists them
  const Tensor& found_inf;  // a float32: where it is defined and not 0, nothing changes
  const Tensor& functors;   // kFunctorBytes for each parameter, to be written
};
inline constexpr int64_t kFunctorBytes = 128;

namespace ops {

// Note [Steps as operators]
// A step of an optimiser is one operator for all parameters that agree in options, device and dtype, so that keys, the
// dispatch trace and call_operator see it like any other. The operators have one signature: lists that go together
// element by element, an optional state's empty; `steps` and `mu_products` as the kernels below want them, empty for
// those that do not; `options` as the optimiser's Step struct has them, flags as 0 or 1; and, of a capturable step,
// what DeviceStep holds. They bump no versions: the optimiser does, when all of its step is done.
using StepOp = Op<void(TensorList params, TensorList grads, TensorList states0, TensorList states1, TensorList states2,
                       ArrayRef<int64_t> steps, ArrayRef<double> mu_products, ArrayRef<double> options,
                       TensorList step_counters, TensorList mu_product_counters, const std::optional<Tensor>& numbers,
                       const std::optional<Tensor>& found_inf, const std::optional<Tensor>& functors)>;
#define RUSH_DECLARE_STEP(name)                                                                               \
  inline constinit StepOp name##_step_{                                                                       \
      "rush::" #name                                                                                          \
      "_step_(Tensor(a!)[] params, Tensor[] grads, Tensor(b!)[] states0, Tensor(c!)[] states1, Tensor(d!)[] " \
      "states2, int[] steps, float[] mu_products, float[] options, Tensor(e!)[] step_counters, Tensor(f!)[] " \
      "mu_product_counters, Tensor? numbers, Tensor? found_inf, Tensor(g!)? functors) -> ()"};
RUSH_DECLARE_STEP(sgd)
RUSH_DECLARE_STEP(adam)
RUSH_DECLARE_STEP(adadelta)
RUSH_DECLARE_STEP(rmsprop)
RUSH_DECLARE_STEP(adagrad)
RUSH_DECLARE_STEP(nadam)
RUSH_DECLARE_STEP(radam)
#undef RUSH_DECLARE_STEP

}  // namespace ops

namespace native {
// What the kernels below require of the lists that they use. Throws ValueError or TypeError naming `op` and the
// parameter's number unless each of `others` goes with `params` tensor by tensor.
void check_step_lists(const char* op, TensorList params, std::initializer_list<TensorList> others);
// The same of a list of numbers, `count` of them.
void check_step_numbers(const char* op, TensorList params, size_t count);
}  // namespace native

namespace kernels {

// Lists go together element by element; an optional one is empty. All tensors have one device and one floating dtype,
// and those of one parameter have its sizes and dense strides. The formulas stand in backends/functors/optim.h. On the
// CPU no kernel allocates memory.
inline constinit Kernel<void(TensorList params, TensorList grads, TensorList momentum_buffers, const SgdStep& step)>
    fused_sgd{"fused_sgd"};
// `steps`: how many steps each parameter has taken, this one included.
inline constinit Kernel<void(TensorList params, TensorList grads, TensorList exp_avgs, TensorList exp_avg_sqs,
                             TensorList max_exp_avg_sqs, ArrayRef<int64_t> steps, const AdamStep& step)>
    fused_adam{"fused_adam"};
inline constinit Kernel<void(TensorList params, TensorList grads, TensorList square_avgs, TensorList acc_deltas,
                             const AdadeltaStep& step)>
    fused_adadelta{"fused_adadelta"};
// `grad_avgs` if centered, `momentum_buffers` with momentum.
inline constinit Kernel<void(TensorList params, TensorList grads, TensorList square_avgs, TensorList grad_avgs,
                             TensorList momentum_buffers, const RmsPropStep& step)>
    fused_rmsprop{"fused_rmsprop"};
inline constinit Kernel<void(TensorList params, TensorList grads, TensorList sums, ArrayRef<int64_t> steps,
                             const AdagradStep& step)>
    fused_adagrad{"fused_adagrad"};
// `mu_products`: of the momenta of all steps that each parameter has taken, this one included.
inline constinit Kernel<void(TensorList params, TensorList grads, TensorList exp_avgs, TensorList exp_avg_sqs,
                             ArrayRef<int64_t> steps, ArrayRef<double> mu_products, const NAdamStep& step)>
    fused_nadam{"fused_nadam"};
inline constinit Kernel<void(TensorList params, TensorList grads, TensorList exp_avgs, TensorList exp_avg_sqs,
                             ArrayRef<int64_t> steps, const RAdamStep& step)>
    fused_radam{"fused_radam"};

// Steps whose numbers are read on the device when they run; of those of `step` itself only whether there is a momentum
// is looked at. They allocate no memory.
inline constinit Kernel<void(TensorList params, TensorList grads, TensorList momentum_buffers,
                             const DeviceStep& on_device, const SgdStep& step)>
    capturable_sgd{"capturable_sgd"};
inline constinit Kernel<void(TensorList params, TensorList grads, TensorList exp_avgs, TensorList exp_avg_sqs,
                             TensorList max_exp_avg_sqs, const DeviceStep& on_device, const AdamStep& step)>
    capturable_adam{"capturable_adam"};
inline constinit Kernel<void(TensorList params, TensorList grads, TensorList square_avgs, TensorList acc_deltas,
                             const DeviceStep& on_device, const AdadeltaStep& step)>
    capturable_adadelta{"capturable_adadelta"};
inline constinit Kernel<void(TensorList params, TensorList grads, TensorList square_avgs, TensorList grad_avgs,
                             TensorList momentum_buffers, const DeviceStep& on_device, const RmsPropStep& step)>
    capturable_rmsprop{"capturable_rmsprop"};
inline constinit Kernel<void(TensorList params, TensorList grads, TensorList sums, const DeviceStep& on_device,
                             const AdagradStep& step)>
    capturable_adagrad{"capturable_adagrad"};
inline constinit Kernel<void(TensorList params, TensorList grads, TensorList exp_avgs, TensorList exp_avg_sqs,
                             const DeviceStep& on_device, const NAdamStep& step)>
    capturable_nadam{"capturable_nadam"};
inline constinit Kernel<void(TensorList params, TensorList grads, TensorList exp_avgs, TensorList exp_avg_sqs,
                             const DeviceStep& on_device, const RAdamStep& step)>
    capturable_radam{"capturable_radam"};

}  // namespace kernels
}  // namespace rush
