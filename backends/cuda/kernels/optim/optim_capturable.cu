// The steps of SGD, Adam, NAdam and RAdam with numbers that lie on the device.
#include "backends/cuda/kernels/optim/capturable_steps.h"
#include "backends/cuda/register.h"
#include "backends/functors/optim.h"
#include "core/ops/optim/optim.h"

namespace rush::cuda {

namespace {

void capturable_sgd(TensorList params, TensorList grads, TensorList buffers, const DeviceStep& on_device,
                    const SgdStep& step) {
  if (step.momentum == 0) return take_steps<functors::Sgd>("SGD", on_device, step, params, grads);
  take_steps<functors::Sgd>("SGD", on_device, step, params, grads, buffers);
}

void capturable_adam(TensorList params, TensorList grads, TensorList means, TensorList squares, TensorList max_squares,
                     const DeviceStep& on_device, const AdamStep& step) {
  if (!step.amsgrad) return take_steps<functors::Adam>("Adam", on_device, step, params, grads, means, squares);
  take_steps<functors::Adam>("Adam", on_device, step, params, grads, means, squares, max_squares);
}

void capturable_nadam(TensorList params, TensorList grads, TensorList means, TensorList squares,
                      const DeviceStep& on_device, const NAdamStep& step) {
  take_steps<functors::NAdam>("NAdam", on_device, step, params, grads, means, squares);
}

void capturable_radam(TensorList params, TensorList grads, TensorList means, TensorList squares,
                      const DeviceStep& on_device, const RAdamStep& step) {
  take_steps<functors::RAdam>("RAdam", on_device, step, params, grads, means, squares);
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
