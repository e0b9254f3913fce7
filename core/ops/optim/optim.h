// Steps of optimisers as operators: each updates a list of parameters and their state in one pass over memory.
#pragma once
#include <utility>

#include "core/dispatch/kernel.h"
#include "core/dispatch/op.h"
#include "core/tensor.h"

namespace rush {

/// What a capturable step counts and reads on the device: Note [Capturable optimisers] in
/// optim/graphs/device_numbers.h.
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
// element by element, the list of a state that the step does not use is empty; `steps` and `mu_products` are empty for
// the rules that do not need them; `options` holds the numbers of the optimiser's Step struct, then its flags as 0 or
// 1; and, of a capturable step, what DeviceStep holds. They bump no versions: the optimiser does, when all of its step
// is done. `step<SgdStep>` is SGD's operator: Note [An optimiser from a description].
using StepOp = Op<void(TensorList params, TensorList grads, TensorList states0, TensorList states1, TensorList states2,
                       ArrayRef<int64_t> steps, ArrayRef<double> mu_products, ArrayRef<double> options,
                       TensorList step_counters, TensorList mu_product_counters, const std::optional<Tensor>& numbers,
                       const std::optional<Tensor>& found_inf, const std::optional<Tensor>& functors)>;
// The name in errors, and the schema.
#define RUSH_STEP(Name, op)                                                                                   \
  static constexpr const char* kName = Name;                                                                  \
  static constexpr const char* kSchema =                                                                      \
      "rush::" op                                                                                             \
      "_step_(Tensor(a!)[] params, Tensor[] grads, Tensor(b!)[] states0, Tensor(c!)[] states1, Tensor(d!)[] " \
      "states2, int[] steps, float[] mu_products, float[] options, Tensor(e!)[] step_counters, Tensor(f!)[] " \
      "mu_product_counters, Tensor? numbers, Tensor? found_inf, Tensor(g!)? functors) -> ()";
template <class Step>
inline constinit StepOp step{Step::kSchema};

}  // namespace ops

/// The Step struct that `options` hold, kNumbers + kFlags of them.
template <class Step>
Step step_from(ArrayRef<double> options) {
  return [&]<size_t... number, size_t... flag>(std::index_sequence<number...>, std::index_sequence<flag...>) {
    return Step{options[number]..., (options[Step::kNumbers + flag] != 0)...};
  }
  (std::make_index_sequence<Step::kNumbers>(), std::make_index_sequence<Step::kFlags>());
}
/// Whether a step with these options uses its state of that number.
template <class Step>
constexpr bool uses_state(const Step& step, size_t state) {
  if constexpr (requires { step.uses(state); }) {
    return state < Step::kStates && step.uses(state);
  } else {
    return state < Step::kStates;
  }
}

namespace native {
// What the kernels below require of the lists that they use. Throws ValueError or TypeError naming `op` and the
// parameter's number unless each of `others` goes with `params` tensor by tensor.
void check_step_lists(const char* op, TensorList params, std::initializer_list<TensorList> others);
// The same of a list of numbers, `count` of them.
void check_step_numbers(const char* op, TensorList params, size_t count);
// What a capturable step with `count` numbers requires of what it reads on the device. Throws ValueError.
void check_device_step(const char* op, TensorList params, const DeviceStep& on_device, size_t count);
}  // namespace native

namespace kernels {

// Lists go together element by element; that of a state that the step does not use is not looked at. All tensors have
// one device and one floating dtype, and those of one parameter have its sizes and dense strides. `steps` are how many
// steps each parameter has taken, this one included, and `mu_products` those of the momenta of all these steps. The
// formulas stand in backends/functors/optim.h and sgd_adam.h. On the CPU no kernel allocates memory.
template <class Step>
inline constinit Kernel<void(TensorList params, TensorList grads, TensorList states0, TensorList states1,
                             TensorList states2, ArrayRef<int64_t> steps, ArrayRef<double> mu_products,
                             const Step& step)>
    fused_step{Step::kName};
// A step whose numbers are read on the device when it runs; of those of `step` itself only which states they use is
// looked at. It allocates no memory.
template <class Step>
inline constinit Kernel<void(TensorList params, TensorList grads, TensorList states0, TensorList states1,
                             TensorList states2, const DeviceStep& on_device, const Step& step)>
    capturable_step{Step::kName};

}  // namespace kernels
}  // namespace rush
