// Losses of one element against another.
#include "backends/cuda/kernels/pointwise/register_pointwise.h"
#include "backends/cuda/kernels/reduce/found_any.h"
#include "backends/functors/loss.h"
#include "core/ops/nn/loss.h"
#include "core/ops/view/copy.h"

namespace rush::cuda {

namespace {

// The functor in the type that is computed in; some have no parameter.
template <template <class> class Loss, class Math>
Loss<Math> make_loss(double parameter) {
  if constexpr (std::is_empty_v<Loss<Math>>) {
    return {};
  } else {
    return {static_cast<Math>(parameter)};
  }
}

template <template <class> class Loss>
struct LossLoop {
  template <class T>
  static void run(TensorIterator& it, double parameter) {
    elementwise<T, T, T>(it, make_loss<Loss, opmath_t<T>>(parameter));
  }
};
template <template <class> class Loss>
void elementwise_loss(TensorIterator& it, double parameter) {
  pick<LossLoop<Loss>>(RealFloatTypes(), it.common_dtype(), it.op())(it, parameter);
}

template <class Loss, class Math>
struct LossGradient {
  Loss loss;
  Math scale;
  __device__ Math operator()(Math x, Math y, Math grad) const { return loss.derivative(x, y) * (grad * scale); }
};

template <template <class> class Loss>
struct LossBackwardLoop {
  template <class T>
  static void run(TensorIterator& it, double parameter, double norm) {
    using Math = opmath_t<T>;
    elementwise<T, T, T, T>(it,
                            LossGradient<Loss<Math>, Math>{make_loss<Loss, Math>(parameter), static_cast<Math>(norm)});
  }
};
template <template <class> class Loss>
void elementwise_loss_backward(TensorIterator& it, double parameter, double norm) {
  pick<LossBackwardLoop<Loss>>(RealFloatTypes(), it.common_dtype(), it.op())(it, parameter, norm);
}

template <class T>
struct OutsideUnitInterval {
  const T* data;
  __device__ bool operator()(int64_t i) const {
    const auto x = static_cast<opmath_t<T>>(data[i]);
    return x < 0 || x > 1;
  }
};

struct UnitIntervalCheck {
  template <class T>
  static void run(const Tensor& input) {
    const Tensor dense = native::contiguous(input);
    report_if_any("binary_cross_entropy", "all elements of input should be between 0 and 1", dense.numel(),
                  OutsideUnitInterval<T>{dense.data_ptr<T>()});
  }
};

void binary_cross_entropy(TensorIterator& it, double parameter) {
  const Tensor& input = it.operand(1).tensor;
  if (!input.is_cpu()) pick<UnitIntervalCheck>(RealFloatTypes(), it.common_dtype(), it.op())(input);
  elementwise_loss<functors::BinaryCrossEntropy>(it, parameter);
}

}  // namespace

void register_pointwise_loss() {
  kernels::mse_loss.set(kCUDA, elementwise_loss<functors::MseLoss>);
  kernels::mse_loss_backward.set(kCUDA, elementwise_loss_backward<functors::MseLoss>);
  kernels::smooth_l1_loss.set(kCUDA, elementwise_loss<functors::SmoothL1Loss>);
  kernels::smooth_l1_loss_backward.set(kCUDA, elementwise_loss_backward<functors::SmoothL1Loss>);
  kernels::huber_loss.set(kCUDA, elementwise_loss<functors::HuberLoss>);
  kernels::huber_loss_backward.set(kCUDA, elementwise_loss_backward<functors::HuberLoss>);
  kernels::binary_cross_entropy.set(kCUDA, binary_cross_entropy);
  kernels::binary_cross_entropy_backward.set(kCUDA, elementwise_loss_backward<functors::BinaryCrossEntropy>);
}

}  // namespace rush::cuda
