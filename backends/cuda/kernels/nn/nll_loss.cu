// Negative log-likelihood of scores (samples, classes, positions).
#include "backends/cuda/device_assert.h"
#include "backends/cuda/kernels/nn/class_loss.h"
#include "backends/cuda/kernels/reduce/register_reductions.h"

namespace rush::cuda {

namespace {

using kernels::ClassLayout;

// The loss of one target, a thread each.
template <class T>
struct TargetLoss {
  using Math = opmath_t<T>;
  const T *scores, *weight;  // weight may be null: ones
  const int64_t* target;
  LossShare<Math>* shares;
  ClassLayout layout;
  int64_t ignore_index;
  DeviceCheck check;

  __device__ void operator()(int64_t i) const {
    const int64_t y = target[i];
    LossShare<Math> share{Math(0), Math(0)};
    if (y != ignore_index && RUSH_DEVICE_CHECK(y >= 0 && y < layout.classes, check, y, layout.classes)) {
      const int64_t at = (i / layout.positions * layout.classes + y) * layout.positions + i % layout.positions;
      share.weight = weight ? static_cast<Math>(weight[y]) : Math(1);
      share.loss = -static_cast<Math>(scores[at]) * share.weight;
    }
    shares[i] = share;
  }
};

// One element of the gradient, which is zero but at the target.
template <class T>
struct TargetGradient {
  using Math = opmath_t<T>;
  T* dx;
  const T *grad, *weight, *norm;  // weight and norm may be null: ones
  const int64_t* target;
  ClassLayout layout;
  int64_t ignore_index, grad_step;
  DeviceCheck check;

  __device__ void operator()(int64_t at) const {
    const int64_t position = at % layout.positions, rest = at / layout.positions;
    const int64_t c = rest % layout.classes, i = rest / layout.classes * layout.positions + position;
    const int64_t y = target[i];
    Math value(0);
    if (c == y && y != ignore_index) {
      const Math share = weight ? static_cast<Math>(weight[y]) : Math(1);
      value = -static_cast<Math>(grad[i * grad_step]) * share / (norm ? static_cast<Math>(*norm) : Math(1));
    } else if (c == 0 && y != ignore_index) {
      RUSH_DEVICE_CHECK(y >= 0 && y < layout.classes, check, y, layout.classes);
    }
    dx[at] = static_cast<T>(value);
  }
};

struct NllLossLoop {
  template <class T>
  static void run(const Tensor& output, const Tensor& total_weight, const Tensor& scores, const Tensor& target,
                  const Tensor& weight, int64_t reduction, int64_t ignore_index, const ClassLayout& l) {
    using Math = opmath_t<T>;
    const char* op = kernels::nll_loss.name();
    const int64_t n = l.samples * l.positions;
    const Scratch shares(static_cast<size_t>(n) * sizeof(LossShare<Math>));
    auto* each = shares.as<LossShare<Math>>();
    for_each_index(op, n,
                   TargetLoss<T>{scores.data_ptr<T>(), weight.defined() ? weight.data_ptr<T>() : nullptr,
                                 target.data_ptr<int64_t>(), each, l, ignore_index, device_check(op)});
    store_losses<T>(op, each, n, output, total_weight.data_ptr<T>(), reduction, false);
  }
};

struct NllLossBackwardLoop {
  template <class T>
  static void run(const Tensor& grad_input, const Tensor& grad_output, const Tensor& target, const Tensor& weight,
                  const Tensor& total_weight, int64_t reduction, int64_t ignore_index, const ClassLayout& l) {
    const char* op = kernels::nll_loss_backward.name();
    for_each_index(op, l.samples * l.classes * l.positions,
                   TargetGradient<T>{grad_input.data_ptr<T>(), grad_output.data_ptr<T>(),
                                     weight.defined() ? weight.data_ptr<T>() : nullptr,
                                     reduction == Reduction::Mean ? total_weight.data_ptr<T>() : nullptr,
                                     target.data_ptr<int64_t>(), l, ignore_index, reduction == Reduction::None ? 1 : 0,
                                     device_check(op)});
  }
};

}  // namespace

void register_nll_loss() {
  set_by_dtype<kernels::nll_loss, NllLossLoop, RealFloatTypes, 2>(kCUDA);
  set_by_dtype<kernels::nll_loss_backward, NllLossBackwardLoop, RealFloatTypes>(kCUDA);
}

}  // namespace rush::cuda
