// The steps of SGD, Adam, NAdam and RAdam: one launch for many parameters.
#include "core/ops/optim/optim.h"

#include "backends/cuda/kernels/optim/many_tensors.h"
#include "backends/cuda/kernels/pointwise/register_pointwise.h"
#include "backends/functors/optim.h"

namespace rush::cuda {

namespace {

struct SgdLoop {
  template <class T>
  static void run(TensorList params, TensorList grads, TensorList buffers, const SgdStep& step) {
    const functors::Sgd<opmath_t<T>> sgd(step);
    const auto step_of = [&](size_t) { return sgd; };
    if (step.momentum == 0) return launch_steps<T>("SGD", step_of, params, grads);
    launch_steps<T>("SGD", step_of, params, grads, buffers);
  }
};

struct AdamLoop {
  template <class T>
  static void run(TensorList params, TensorList grads, TensorList means, TensorList squares, TensorList max_squares,
                  ArrayRef<int64_t> steps, const AdamStep& step) {
    native::check_step_numbers("Adam", params, steps.size());
    const auto step_of = [&](size_t i) { return functors::Adam<opmath_t<T>>(step, steps[i]); };
    if (!step.amsgrad) return launch_steps<T>("Adam", step_of, params, grads, means, squares);
    launch_steps<T>("Adam", step_of, params, grads, means, squares, max_squares);
  }
};

struct NAdamLoop {
  template <class T>
  static void run(TensorList params, TensorList grads, TensorList means, TensorList squares, ArrayRef<int64_t> steps,
                  ArrayRef<double> mu_products, const NAdamStep& step) {
    native::check_step_numbers("NAdam", params, steps.size());
    native::check_step_numbers("NAdam", params, mu_products.size());
    const auto step_of = [&](size_t i) { return functors::NAdam<opmath_t<T>>(step, steps[i], mu_products[i]); };
    launch_steps<T>("NAdam", step_of, params, grads, means, squares);
  }
};

struct RAdamLoop {
  template <class T>
  static void run(TensorList params, TensorList grads, TensorList means, TensorList squares, ArrayRef<int64_t> steps,
                  const RAdamStep& step) {
    native::check_step_numbers("RAdam", params, steps.size());
    const auto step_of = [&](size_t i) { return functors::RAdam<opmath_t<T>>(step, steps[i]); };
    launch_steps<T>("RAdam", step_of, params, grads, means, squares);
  }
};

void fused_sgd(TensorList params, TensorList grads, TensorList buffers, const SgdStep& step) {
  if (params.empty()) return;
  pick<SgdLoop>(RealFloatTypes(), params[0].scalar_type(), "SGD")(params, grads, buffers, step);
}

void fused_adam(TensorList params, TensorList grads, TensorList means, TensorList squares, TensorList max_squares,
                ArrayRef<int64_t> steps, const AdamStep& step) {
  if (params.empty()) return;
  pick<AdamLoop>(RealFloatTypes(), params[0].scalar_type(), "Adam")(params, grads, means, squares, max_squares, steps,
                                                                    step);
}

void fused_nadam(TensorList params, TensorList grads, TensorList means, TensorList squares, ArrayRef<int64_t> steps,
                 ArrayRef<double> mu_products, const NAdamStep& step) {
  if (params.empty()) return;
  pick<NAdamLoop>(RealFloatTypes(), params[0].scalar_type(), "NAdam")(params, grads, means, squares, steps, mu_products,
                                                                      step);
}

void fused_radam(TensorList params, TensorList grads, TensorList means, TensorList squares, ArrayRef<int64_t> steps,
                 const RAdamStep& step) {
  if (params.empty()) return;
  pick<RAdamLoop>(RealFloatTypes(), params[0].scalar_type(), "RAdam")(params, grads, means, squares, steps, step);
}

}  // namespace

void register_optim() {
  kernels::fused_sgd.set(kCUDA, fused_sgd);
  kernels::fused_adam.set(kCUDA, fused_adam);
  kernels::fused_nadam.set(kCUDA, fused_nadam);
  kernels::fused_radam.set(kCUDA, fused_radam);
}

}  // namespace rush::cuda
