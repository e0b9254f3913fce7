// The steps of optimisers: one launch for many parameters.
#include "core/ops/optim/optim.h"

#include "backends/cuda/kernels/optim/many_tensors.h"
#include "backends/cuda/kernels/pick.h"
#include "backends/cuda/kernels/pointwise/register_pointwise.h"
#include "backends/functors/optim.h"

namespace rush::cuda {

namespace {

template <class Rule>
struct Steps {
  using Step = typename Rule::Step;

  template <class T>
  static void run(TensorList params, TensorList grads, TensorList states0, TensorList states1, TensorList states2,
                  ArrayRef<int64_t> steps, ArrayRef<double> mu_products, const Step& step) {
    functors::with_step_functors<Rule, opmath_t<T>>(step, params, {states0, states1, states2}, steps, mu_products,
                                                    [&](const auto& step_of, const auto&... states) {
                                                      launch_steps<T>(Step::kName, step_of, params, grads, states...);
                                                    });
  }
  static void run_any(TensorList params, TensorList grads, TensorList states0, TensorList states1, TensorList states2,
                      ArrayRef<int64_t> steps, ArrayRef<double> mu_products, const Step& step) {
    if (params.empty()) return;
    pick<Steps>(RealFloatTypes(), params[0].scalar_type(), Step::kName)(params, grads, states0, states1, states2, steps,
                                                                        mu_products, step);
  }
};

}  // namespace

void register_optim() {
  functors::for_each_step_rule(
      []<class Rule>(Rule) { kernels::fused_step<typename Rule::Step>.set(kCUDA, Steps<Rule>::run_any); });
}

}  // namespace rush::cuda
