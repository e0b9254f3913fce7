// The steps of Adadelta, RMSprop and Adagrad, see Note [Many tensors in one launch].
#include "backends/cuda/kernels/optim/many_tensors.h"
#include "backends/cuda/kernels/pointwise/register_pointwise.h"
#include "backends/functors/optim.h"
#include "core/ops/optim/optim.h"

namespace rush::cuda {

namespace {

struct AdadeltaLoop {
  template <class T>
  static void run(TensorList params, TensorList grads, TensorList squares, TensorList deltas,
                  const AdadeltaStep& step) {
    const functors::Adadelta<opmath_t<T>> adadelta(step);
    launch_steps<T>(
        "Adadelta", [&](size_t) { return adadelta; }, params, grads, squares, deltas);
  }
};

struct RmsPropLoop {
  template <class T>
  static void run(TensorList params, TensorList grads, TensorList squares, TensorList means, TensorList buffers,
                  const RmsPropStep& step) {
    const functors::RmsProp<opmath_t<T>> rmsprop(step);
    functors::with_states(step, means, buffers, [&](const auto&... states) {
      launch_steps<T>(
          "RMSprop", [&](size_t) { return rmsprop; }, params, grads, squares, states...);
    });
  }
};

struct AdagradLoop {
  template <class T>
  static void run(TensorList params, TensorList grads, TensorList sums, ArrayRef<int64_t> steps,
                  const AdagradStep& step) {
    native::check_step_numbers("Adagrad", params, steps.size());
    const auto step_of = [&](size_t i) { return functors::Adagrad<opmath_t<T>>(step, steps[i]); };
    launch_steps<T>("Adagrad", step_of, params, grads, sums);
  }
};

void fused_adadelta(TensorList params, TensorList grads, TensorList squares, TensorList deltas,
                    const AdadeltaStep& step) {
  if (params.empty()) return;
  pick<AdadeltaLoop>(RealFloatTypes(), params[0].scalar_type(), "Adadelta")(params, grads, squares, deltas, step);
}

void fused_rmsprop(TensorList params, TensorList grads, TensorList squares, TensorList means, TensorList buffers,
                   const RmsPropStep& step) {
  if (params.empty()) return;
  pick<RmsPropLoop>(RealFloatTypes(), params[0].scalar_type(), "RMSprop")(params, grads, squares, means, buffers, step);
}

void fused_adagrad(TensorList params, TensorList grads, TensorList sums, ArrayRef<int64_t> steps,
                   const AdagradStep& step) {
  if (params.empty()) return;
  pick<AdagradLoop>(RealFloatTypes(), params[0].scalar_type(), "Adagrad")(params, grads, sums, steps, step);
}

}  // namespace

void register_optim_adaptive() {
  kernels::fused_adadelta.set(kCUDA, fused_adadelta);
  kernels::fused_rmsprop.set(kCUDA, fused_rmsprop);
  kernels::fused_adagrad.set(kCUDA, fused_adagrad);
}

}  // namespace rush::cuda
