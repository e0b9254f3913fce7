// The steps of SGD, Adam, NAdam and RAdam with numbers that lie on the device.
#include "backends/cuda/kernels/capturable_steps.h"
#include "backends/cuda/register.h"
#include "backends/functors/optim.h"
#include "core/ops/optim.h"

namespace rush::cuda {

namespace {

template <class Math>
struct MakeSgd {
  using Functor = functors::Sgd<Math>;
  SgdStep step;
  __device__ Functor operator()(const double* numbers, int64_t t, double*) const {
    SgdStep now = step;
    now.take(numbers);
    now.first = t == 1;
    return Functor(now);
  }
};
template <class Math>
struct MakeNAdam {
  using Functor = functors::NAdam<Math>;
  NAdamStep step;
  __device__ Functor operator()(const double* numbers, int64_t t, double* mu_product) const {
    NAdamStep now = step;
    now.take(numbers);
    *mu_product *= now.momentum_at(t);
    return Functor(now, t, *mu_product);
  }
};

struct CapturableSgdLoop {
  template <class T>
  static void run(TensorList params, TensorList grads, TensorList buffers, const DeviceStep& on_device,
                  const SgdStep& step) {
    const MakeSgd<opmath_t<T>> make{step};
    if (step.momentum == 0) return take_steps<T>("SGD", on_device, make, params, grads);
    take_steps<T>("SGD", on_device, make, params, grads, buffers);
  }
};

struct CapturableAdamLoop {
  template <class T>
  static void run(TensorList params, TensorList grads, TensorList means, TensorList squares, TensorList max_squares,
                  const DeviceStep& on_device, const AdamStep& step) {
    const MakeFunctor<functors::Adam<opmath_t<T>>, AdamStep> make{step};
    if (!step.amsgrad) return take_steps<T>("Adam", on_device, make, params, grads, means, squares);
    take_steps<T>("Adam", on_device, make, params, grads, means, squares, max_squares);
  }
};

struct CapturableNAdamLoop {
  template <class T>
  static void run(TensorList params, TensorList grads, TensorList means, TensorList squares,
                  const DeviceStep& on_device, const NAdamStep& step) {
    take_steps<T>("NAdam", on_device, MakeNAdam<opmath_t<T>>{step}, params, grads, means, squares);
  }
};

struct CapturableRAdamLoop {
  template <class T>
  static void run(TensorList params, TensorList grads, TensorList means, TensorList squares,
                  const DeviceStep& on_device, const RAdamStep& step) {
    const MakeFunctor<functors::RAdam<opmath_t<T>>, RAdamStep> make{step};
    take_steps<T>("RAdam", on_device, make, params, grads, means, squares);
  }
};

void capturable_sgd(TensorList params, TensorList grads, TensorList buffers, TensorList steps, const Tensor& numbers,
                    const Tensor& found_inf, const SgdStep& step) {
  if (params.empty()) return;
  pick<CapturableSgdLoop>(RealFloatTypes(), params[0].scalar_type(), "SGD")(params, grads, buffers,
                                                                            {steps, numbers, found_inf}, step);
}

void capturable_adam(TensorList params, TensorList grads, TensorList means, TensorList squares, TensorList max_squares,
                     TensorList steps, const Tensor& numbers, const Tensor& found_inf, const AdamStep& step) {
  if (params.empty()) return;
  pick<CapturableAdamLoop>(RealFloatTypes(), params[0].scalar_type(), "Adam")(
      params, grads, means, squares, max_squares, {steps, numbers, found_inf}, step);
}

void capturable_nadam(TensorList params, TensorList grads, TensorList means, TensorList squares, TensorList steps,
                      TensorList mu_products, const Tensor& numbers, const Tensor& found_inf, const NAdamStep& step) {
  if (params.empty()) return;
  pick<CapturableNAdamLoop>(RealFloatTypes(), params[0].scalar_type(), "NAdam")(
      params, grads, means, squares, {steps, numbers, found_inf, mu_products}, step);
}

void capturable_radam(TensorList params, TensorList grads, TensorList means, TensorList squares, TensorList steps,
                      const Tensor& numbers, const Tensor& found_inf, const RAdamStep& step) {
  if (params.empty()) return;
  pick<CapturableRAdamLoop>(RealFloatTypes(), params[0].scalar_type(), "RAdam")(params, grads, means, squares,
                                                                                {steps, numbers, found_inf}, step);
}

}  // namespace

void register_capturable_optim() {
  kernels::capturable_sgd.set(kCUDA, capturable_sgd);
  kernels::capturable_adam.set(kCUDA, capturable_adam);
  kernels::capturable_nadam.set(kCUDA, capturable_nadam);
  kernels::capturable_radam.set(kCUDA, capturable_radam);
  register_capturable_adaptive_optim();
}

}  // namespace rush::cuda
