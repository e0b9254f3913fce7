// The steps of SGD, Adam, NAdam and RAdam with numbers that lie on the device.
#include "backends/cuda/kernels/capturable_steps.h"
#include "backends/cuda/register.h"
#include "backends/functors/optim.h"
#include "core/ops/optim.h"

namespace rush::cuda {

namespace {

void capturable_sgd(TensorList params, TensorList grads, TensorList buffers, TensorList steps, const Tensor& numbers,
                    const Tensor& found_inf, const SgdStep& step) {
  const DeviceStep on_device{steps, numbers, found_inf};
  if (step.momentum == 0) return take_steps<functors::Sgd>("SGD", on_device, step, params, grads);
  take_steps<functors::Sgd>("SGD", on_device, step, params, grads, buffers);
}

void capturable_adam(TensorList params, TensorList grads, TensorList means, TensorList squares, TensorList max_squares,
                     TensorList steps, const Tensor& numbers, const Tensor& found_inf, const AdamStep& step) {
  const DeviceStep on_device{steps, numbers, found_inf};
  if (!step.amsgrad) return take_steps<functors::Adam>("Adam", on_device, step, params, grads, means, squares);
  take_steps<functors::Adam>("Adam", on_device, step, params, grads, means, squares, max_squares);
}

void capturable_nadam(TensorList params, TensorList grads, TensorList means, TensorList squares, TensorList steps,
                      TensorList mu_products, const Tensor& numbers, const Tensor& found_inf, const NAdamStep& step) {
  take_steps<functors::NAdam>("NAdam", {steps, numbers, found_inf, mu_products}, step, params, grads, means, squares);
}

void capturable_radam(TensorList params, TensorList grads, TensorList means, TensorList squares, TensorList steps,
                      const Tensor& numbers, const Tensor& found_inf, const RAdamStep& step) {
  take_steps<functors::RAdam>("RAdam", {steps, numbers, found_inf}, step, params, grads, means, squares);
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
