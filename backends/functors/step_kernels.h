// The kernels of optimisers' steps, from their rules.
#pragma once
#include "backends/functors/optim.h"
#include "backends/functors/pick.h"

namespace rush::functors {

// The kernel of a rule. Backend::run_steps<T>(name, step_of, params, grads, states...) takes the steps on one device.
template <class Rule, class Backend>
struct Steps {
  using Step = typename Rule::Step;

  template <class T>
  static void run(TensorList params, TensorList grads, TensorList states0, TensorList states1, TensorList states2,
                  ArrayRef<int64_t> steps, ArrayRef<double> mu_products, const Step& step) {
    with_step_functors<Rule, opmath_t<T>>(
        step, params, {states0, states1, states2}, steps, mu_products, [&](const auto& step_of, const auto&... states) {
          Backend::template run_steps<T>(Step::kName, step_of, params, grads, states...);
        });
  }
  static void run_any(TensorList params, TensorList grads, TensorList states0, TensorList states1, TensorList states2,
                      ArrayRef<int64_t> steps, ArrayRef<double> mu_products, const Step& step) {
    if (params.empty()) return;
    pick<Steps>(RealFloatTypes(), params[0].scalar_type(), Step::kName)(params, grads, states0, states1, states2, steps,
                                                                        mu_products, step);
  }
};

template <class Backend>
void set_steps(DeviceType device) {
  for_each_step_rule([device]<class Rule>(Rule) {
    kernels::fused_step<typename Rule::Step>.set(device, Steps<Rule, Backend>::run_any);
  });
}

}  // namespace rush::functors
