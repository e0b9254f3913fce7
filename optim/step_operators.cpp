// The operators of steps: Note [Steps as operators].
#include "backends/functors/optim.h"
#include "core/dispatch/registry.h"
#include "optim/optim.h"

namespace rush::optim {

namespace {

template <class Step>
Step checked_step(ArrayRef<double> options) {
  RUSH_CHECK_VALUE(options.size() == Step::kNumbers + Step::kFlags, Step::kName, ": expected ",
                   Step::kNumbers + Step::kFlags, " options, got ", options.size());
  return step_from<Step>(options);
}

template <class Step>
void take_step(TensorList params, TensorList grads, TensorList states0, TensorList states1, TensorList states2,
               ArrayRef<int64_t> steps, ArrayRef<double> mu_products, ArrayRef<double> options,
               TensorList step_counters, TensorList mu_product_counters, const std::optional<Tensor>& numbers,
               const std::optional<Tensor>& found_inf, const std::optional<Tensor>& functors) {
  const auto step = checked_step<Step>(options);
  if (params.empty()) return;
  const DeviceType device = params[0].device().type;
  if (!given(numbers)) {
    return kernels::fused_step<Step>(device, params, grads, states0, states1, states2, steps, mu_products, step);
  }
  const Tensor found = found_inf.value_or(Tensor()), memory = functors.value_or(Tensor());
  const DeviceStep on_device{step_counters, mu_product_counters, *numbers, found, memory};
  native::check_device_step(Step::kName, params, on_device, Step::kNumbers);
  kernels::capturable_step<Step>(device, params, grads, states0, states1, states2, on_device, step);
}

// Throws ValueError unless the list has the states of that number.
template <class Step>
void check_states(size_t number, TensorList params, TensorList states) {
  for (size_t i = 0; i < params.size(); ++i) {
    const Tensor like = number < Step::kStates ? Step::like(number, params[i]) : Tensor();
    RUSH_CHECK_VALUE(like.defined() ? states.size() == params.size() : states.empty(), Step::kName, ": got ",
                     states.size(), " states of number ", number, " for ", params.size(), " parameters, one of shape ",
                     params[i].sizes());
    RUSH_CHECK_VALUE(!like.defined() || (states[i].defined() && states[i].sizes() == like.sizes()), Step::kName,
                     ": the state of number ", number, " of parameter ", i, " does not have shape ",
                     like.defined() ? like.sizes() : IntArrayRef());
  }
}

template <class Step>
void compose_step(TensorList params, TensorList grads, TensorList states0, TensorList states1, TensorList states2,
                  ArrayRef<int64_t> steps, ArrayRef<double>, ArrayRef<double> options, TensorList, TensorList,
                  const std::optional<Tensor>& numbers, const std::optional<Tensor>&, const std::optional<Tensor>&) {
  const auto step = checked_step<Step>(options);
  RUSH_CHECK_VALUE(!given(numbers), Step::kName, ": its step is not capturable");
  native::check_step_lists(Step::kName, params, {grads});
  native::check_step_numbers(Step::kName, params, steps.size());
  check_states<Step>(0, params, states0);
  check_states<Step>(1, params, states1);
  check_states<Step>(2, params, states2);
  for (size_t i = 0; i < params.size(); ++i) {
    const auto state = [&](TensorList states) { return states.empty() ? Tensor() : states[i]; };
    step.compose(params[i], grads[i], state(states0), state(states1), state(states2), steps[i]);
  }
}

}  // namespace

double NAdamOptions::momentum_at(ArrayRef<double> options, int64_t t) {
  return functors::momentum_at(checked_step<NAdamStep>(options), t);
}

void register_step_operators(Registry& r) {
  functors::for_each_step_rule(
      [&]<class Rule>(Rule) { r.native(ops::step<typename Rule::Step>, take_step<typename Rule::Step>); });
  for_each_composed_step([&]<class Step>(Step) { r.native(ops::step<Step>, compose_step<Step>); });
}

}  // namespace rush::optim
