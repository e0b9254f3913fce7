// The steps of Adadelta, RMSprop and Adagrad with numbers that lie on the device.
#include "backends/cuda/kernels/capturable_steps.h"
#include "backends/functors/optim.h"
#include "core/ops/optim.h"

namespace rush::cuda {

namespace {

struct CapturableAdadeltaLoop {
  template <class T>
  static void run(TensorList params, TensorList grads, TensorList squares, TensorList deltas,
                  const DeviceStep& on_device, const AdadeltaStep& step) {
    const MakeFunctor<functors::Adadelta<opmath_t<T>>, AdadeltaStep> make{step};
    take_steps<T>("Adadelta", on_device, make, params, grads, squares, deltas);
  }
};

struct CapturableRmsPropLoop {
  template <class T>
  static void run(TensorList params, TensorList grads, TensorList squares, TensorList means, TensorList buffers,
                  const DeviceStep& on_device, const RmsPropStep& step) {
    const MakeFunctor<functors::RmsProp<opmath_t<T>>, RmsPropStep> make{step};
    functors::with_states(step, means, buffers, [&](const auto&... states) {
      take_steps<T>("RMSprop", on_device, make, params, grads, squares, states...);
    });
  }
};

struct CapturableAdagradLoop {
  template <class T>
  static void run(TensorList params, TensorList grads, TensorList sums, const DeviceStep& on_device,
                  const AdagradStep& step) {
    const MakeFunctor<functors::Adagrad<opmath_t<T>>, AdagradStep> make{step};
    take_steps<T>("Adagrad", on_device, make, params, grads, sums);
  }
};

void capturable_adadelta(TensorList params, TensorList grads, TensorList squares, TensorList deltas, TensorList steps,
                         const Tensor& numbers, const Tensor& found_inf, const AdadeltaStep& step) {
  if (params.empty()) return;
  pick<CapturableAdadeltaLoop>(RealFloatTypes(), params[0].scalar_type(), "Adadelta")(
      params, grads, squares, deltas, {steps, numbers, found_inf}, step);
}

void capturable_rmsprop(TensorList params, TensorList grads, TensorList squares, TensorList means, TensorList buffers,
                        TensorList steps, const Tensor& numbers, const Tensor& found_inf, const RmsPropStep& step) {
  if (params.empty()) return;
  pick<CapturableRmsPropLoop>(RealFloatTypes(), params[0].scalar_type(), "RMSprop")(
      params, grads, squares, means, buffers, {steps, numbers, found_inf}, step);
}

void capturable_adagrad(TensorList params, TensorList grads, TensorList sums, TensorList steps, const Tensor& numbers,
                        const Tensor& found_inf, const AdagradStep& step) {
  if (params.empty()) return;
  pick<CapturableAdagradLoop>(RealFloatTypes(), params[0].scalar_type(), "Adagrad")(params, grads, sums,
                                                                                    {steps, numbers, found_inf}, step);
}

}  // namespace

void register_capturable_adaptive_optim() {
  kernels::capturable_adadelta.set(kCUDA, capturable_adadelta);
  kernels::capturable_rmsprop.set(kCUDA, capturable_rmsprop);
  kernels::capturable_adagrad.set(kCUDA, capturable_adagrad);
}

}  // namespace rush::cuda
