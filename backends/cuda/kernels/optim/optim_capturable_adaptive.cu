// The steps of Adadelta, RMSprop and Adagrad with numbers that lie on the device.
#include "backends/cuda/kernels/optim/capturable_steps.h"
#include "backends/functors/optim.h"
#include "core/ops/optim/optim.h"

namespace rush::cuda {

namespace {

void capturable_adadelta(TensorList params, TensorList grads, TensorList squares, TensorList deltas,
                         const DeviceStep& on_device, const AdadeltaStep& step) {
  take_steps<functors::Adadelta>("Adadelta", on_device, step, params, grads, squares, deltas);
}

void capturable_rmsprop(TensorList params, TensorList grads, TensorList squares, TensorList means, TensorList buffers,
                        const DeviceStep& on_device, const RmsPropStep& step) {
  functors::with_states(step, means, buffers, [&](const auto&... states) {
    take_steps<functors::RmsProp>("RMSprop", on_device, step, params, grads, squares, states...);
  });
}

void capturable_adagrad(TensorList params, TensorList grads, TensorList sums, const DeviceStep& on_device,
                        const AdagradStep& step) {
  take_steps<functors::Adagrad>("Adagrad", on_device, step, params, grads, sums);
}

}  // namespace

void register_capturable_adaptive_optim() {
  kernels::capturable_adadelta.set(kCUDA, capturable_adadelta);
  kernels::capturable_rmsprop.set(kCUDA, capturable_rmsprop);
  kernels::capturable_adagrad.set(kCUDA, capturable_adagrad);
}

}  // namespace rush::cuda
