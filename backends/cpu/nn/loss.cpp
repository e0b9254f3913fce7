#include "core/ops/nn/loss.h"

#include <cmath>
#include <limits>

#include "backends/cpu/loops.h"
#include "backends/cpu/pointwise/vector_exp.h"
#include "backends/cpu/reduce/moments.h"
#include "backends/cpu/register.h"
#include "backends/functors/loss.h"

namespace rush::cpu {

namespace {

using kernels::ClassLayout;
using kernels::CrossEntropyOptions;

template <template <class> class Loss>
struct LossLoop {
  template <class T>
  static void run(TensorIterator& it, double parameter) {
    pointwise<T, T, T>(it, make<opmath_t<T>>(parameter));
  }
  // The functor in the type that is computed in; some have no parameter.
  template <class Math>
  static Loss<Math> make(double parameter) {
    if constexpr (std::is_empty_v<Loss<Math>>)
      return {};
    else
      return {static_cast<Math>(parameter)};
  }
};

template <template <class> class Loss>
struct LossBackwardLoop {
  template <class T>
  static void run(TensorIterator& it, double parameter, double norm) {
    using Math = opmath_t<T>;
    const auto loss = LossLoop<Loss>::template make<Math>(parameter);
    const Math scale = static_cast<Math>(norm);
    it.for_each([&](char** data, const int64_t* strides, int64_t n) {
      const int64_t size = sizeof(T);
      // After a mean or a sum the gradient is one number.
      if (strides[0] == size && strides[1] == size && strides[2] == size && strides[3] == 0) {
        T* out = reinterpret_cast<T*>(data[0]);
        const T *x = reinterpret_cast<const T*>(data[1]), *y = reinterpret_cast<const T*>(data[2]);
        const Math grad = load<T>(data[3]) * scale;
#pragma GCC ivdep
        for (int64_t i = 0; i < n; ++i) {
          out[i] = static_cast<T>(loss.derivative(static_cast<Math>(x[i]), static_cast<Math>(y[i])) * grad);
        }
        return;
      }
      const auto f = [&](Math x, Math y, Math grad) { return loss.derivative(x, y) * (grad * scale); };
      cpu::run<decltype(f), T, T, T, T>(data, strides, n, f, std::index_sequence_for<T, T, T>());
    });
  }
};

template <template <class> class Loss>
void elementwise(TensorIterator& it, double parameter) {
  pick<LossLoop<Loss>>(RealFloatTypes(), it.common_dtype(), it.op())(it, parameter);
}
template <template <class> class Loss>
void elementwise_backward(TensorIterator& it, double parameter, double norm) {
  pick<LossBackwardLoop<Loss>>(RealFloatTypes(), it.common_dtype(), it.op())(it, parameter, norm);
}

struct UnitIntervalCheck {
  template <class T>
  static void run(TensorIterator& it) {
    it.for_each([](char** data, const int64_t* strides, int64_t n) {
      for (int64_t i = 0; i < n; ++i) {
        const auto x = load<T>(data[1] + i * strides[1]);
        RUSH_CHECK_VALUE(!(x < 0) && !(x > 1),
                         "binary_cross_entropy: all elements of input should be between 0 and 1, got ",
                         static_cast<double>(x));
      }
    });
  }
};

void binary_cross_entropy(TensorIterator& it, double parameter) {
  pick<UnitIntervalCheck>(RealFloatTypes(), it.common_dtype(), it.op())(it);
  elementwise<functors::BinaryCrossEntropy>(it, parameter);
}

void check_class(const char* op, int64_t target, int64_t classes) {
  RUSH_CHECK_INDEX(target >= 0 && target < classes, op, ": Target ", target, " is out of bounds, classes are in [0, ",
                   classes, ")");
}

struct NllLossLoop {
  template <class T>
  static void run(const Tensor& output, const Tensor& total_weight, const Tensor& scores, const Tensor& target,
                  const Tensor& weight, int64_t reduction, int64_t ignore_index, const ClassLayout& l) {
    using Math = opmath_t<T>;
    const T *x = scores.data_ptr<T>(), *w = data_or_null<T>(weight);
    const int64_t* y = target.data_ptr<int64_t>();
    T* out = output.data_ptr<T>();
    const bool each = reduction == Reduction::None;
    const auto add_losses = [&](int64_t begin, int64_t end, Math* sums) {
      Math losses = 0, shares = 0;
      for (int64_t i = begin; i < end; ++i) {
        if (y[i] == ignore_index) {
          if (each) out[i] = T(0);
          continue;
        }
        check_class("nll_loss", y[i], l.classes);
        const Math share = w ? static_cast<Math>(w[y[i]]) : Math(1);
        const int64_t sample = l.positions == 1 ? i : i / l.positions;
        const int64_t at = i + (sample * (l.classes - 1) + y[i]) * l.positions;
        const Math loss = -static_cast<Math>(x[at]) * share;
        if (each) out[i] = static_cast<T>(loss);
        losses += loss;
        shares += share;
      }
      sums[0] += losses;
      sums[1] += shares;
    };
    const std::vector<double> sums = sum_over_rows<Math>(l.samples * l.positions, 2, 4, add_losses);
    *total_weight.data_ptr<T>() = static_cast<T>(each ? Math(0) : static_cast<Math>(sums[1]));
    if (reduction == Reduction::Sum) *out = static_cast<T>(static_cast<Math>(sums[0]));
    if (reduction == Reduction::Mean) *out = static_cast<T>(static_cast<Math>(sums[0] / sums[1]));
  }
};

struct NllLossBackwardLoop {
  template <class T>
  static void run(const Tensor& grad_input, const Tensor& grad_output, const Tensor& target, const Tensor& weight,
                  const Tensor& total_weight, int64_t reduction, int64_t ignore_index, const ClassLayout& l) {
    using Math = opmath_t<T>;
    T* dx = grad_input.data_ptr<T>();
    const T *grad = grad_output.data_ptr<T>(), *w = data_or_null<T>(weight);
    const int64_t* y = target.data_ptr<int64_t>();
    const Math norm = reduction == Reduction::Mean ? static_cast<Math>(*total_weight.data_ptr<T>()) : Math(1);
    const int64_t step = reduction == Reduction::None ? 1 : 0;
    const int64_t size = l.classes * l.positions;
    parallel_for(0, l.samples, std::max<int64_t>(1, kGrain / std::max<int64_t>(size, 1)),
                 [&](int64_t begin, int64_t end) {
                   std::fill(dx + begin * size, dx + end * size, T(0));
                   for (int64_t i = begin * l.positions; i < end * l.positions; ++i) {
                     if (y[i] == ignore_index) continue;
                     check_class("nll_loss_backward", y[i], l.classes);
                     const Math share = w ? static_cast<Math>(w[y[i]]) : Math(1);
                     const int64_t at = (i / l.positions * l.classes + y[i]) * l.positions + i % l.positions;
                     dx[at] = static_cast<T>(-static_cast<Math>(grad[i * step]) * share / norm);
                   }
                 });
  }
};

// The logarithm of the sum of e^x over a row: max + log sum e^(x - max).
template <class T>
opmath_t<T> log_sum_exp(const T* x, int64_t n) {
  using Math = opmath_t<T>;
  Math largest = -std::numeric_limits<Math>::infinity();
#pragma omp simd reduction(max : largest)
  for (int64_t i = 0; i < n; ++i) {
    const auto value = static_cast<Math>(x[i]);
    largest = value > largest ? value : largest;
  }
  if (std::isinf(largest)) largest = 0;  // all are -inf, or one is inf: inf - inf would be NaN
  const double sum = long_sum<Math>(n, [=](int64_t i) { return vector_exp(static_cast<Math>(x[i]) - largest); });
  return largest + static_cast<Math>(std::log(sum));
}

// The weights a_c of one row, see Note [Fused cross entropy].
template <class Math>
struct RowWeights {
  const Math* weight;  // null: ones
  int64_t classes;
  Math target_share, spread;  // 1 - e and e / C

  RowWeights(const Math* w, int64_t n, const CrossEntropyOptions& options)
      : weight(w),
        classes(n),
        target_share(static_cast<Math>(1 - options.label_smoothing)),
        spread(static_cast<Math>(options.label_smoothing / static_cast<double>(n))) {}
  Math of_class(int64_t c) const { return weight ? weight[c] : Math(1); }
  // A for target y, from the sum of all classes' weights.
  Math total(int64_t y, Math all) const { return target_share * of_class(y) + spread * all; }
  // Sum of w_c term(c). Each case has a loop of its own: a choice inside would keep it from being vectorised.
  template <class Term>
  Math sum(const Term& term) const {
    return static_cast<Math>(weight ? long_sum<Math>(classes, [&](int64_t c) { return weight[c] * term(c); })
                                    : long_sum<Math>(classes, term));
  }
  Math all() const {
    return weight ? sum([](int64_t) { return Math(1); }) : static_cast<Math>(classes);
  }
};

struct CrossEntropyLoop {
  template <class T>
  static void run(const Tensor& output, const Tensor& logsumexp, const Tensor& total_weight, const Tensor& scores,
                  const Tensor& target, const Tensor& weight, const CrossEntropyOptions& options) {
    using Math = opmath_t<T>;
    const int64_t samples = logsumexp.numel(), classes = scores.size(-1);
    const RowWeights<Math> weights(data_or_null<Math>(weight), classes, options);
    const T* in = scores.data_ptr<T>();
    const int64_t* targets = target.data_ptr<int64_t>();
    Math* lse = logsumexp.data_ptr<Math>();
    Math* out = output.data_ptr<Math>();
    const bool each = options.reduction == Reduction::None;
    const auto add_losses = [&](int64_t begin, int64_t end, Math* sums) {
      for (int64_t i = begin; i < end; ++i) {
        const T* x = in + i * classes;
        const int64_t y = targets[i];
        lse[i] = log_sum_exp(x, classes);
        if (y == options.ignore_index) {
          if (each) out[i] = Math(0);
          continue;
        }
        check_class("cross_entropy_loss", y, classes);
        Math loss = weights.target_share * weights.of_class(y) * (lse[i] - static_cast<Math>(x[y]));
        if (weights.spread != 0) {
          loss +=
              weights.spread * weights.sum([x, level = lse[i]](int64_t c) { return level - static_cast<Math>(x[c]); });
        }
        if (each) out[i] = loss;
        sums[0] += loss;
        sums[1] += weights.of_class(y);
      }
    };
    const std::vector<double> sums = sum_over_rows<Math>(samples, 2, 8 * classes, add_losses);
    *total_weight.data_ptr<Math>() = static_cast<Math>(sums[1]);
    if (options.reduction == Reduction::Sum) *out = static_cast<Math>(sums[0]);
    if (options.reduction == Reduction::Mean) *out = static_cast<Math>(sums[0] / sums[1]);
  }
};

struct CrossEntropyBackwardLoop {
  template <class T>
  static void run(const Tensor& grad_input, const Tensor& grad_output, const Tensor& scores, const Tensor& target,
                  const Tensor& weight, const Tensor& logsumexp, const Tensor& total_weight,
                  const CrossEntropyOptions& options) {
    using Math = opmath_t<T>;
    const int64_t samples = logsumexp.numel(), classes = scores.size(-1);
    const RowWeights<Math> weights(data_or_null<Math>(weight), classes, options);
    const Math all = weights.all();
    const T* in = scores.data_ptr<T>();
    const Math* grad = grad_output.data_ptr<Math>();
    const int64_t* targets = target.data_ptr<int64_t>();
    const Math* lse = logsumexp.data_ptr<Math>();
    const Math norm = options.reduction == Reduction::Mean ? *total_weight.data_ptr<Math>() : Math(1);
    const int64_t step = options.reduction == Reduction::None ? 1 : 0;
    T* out = grad_input.data_ptr<T>();
    const int64_t grain = std::max<int64_t>(1, kGrain / std::max<int64_t>(8 * classes, 1));
    parallel_for(0, samples, grain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const T* x = in + i * classes;
        T* dx = out + i * classes;
        const int64_t y = targets[i];
        if (y == options.ignore_index) {
          std::fill_n(dx, classes, T(0));
          continue;
        }
        check_class("cross_entropy_loss_backward", y, classes);
        const Math scale = grad[i * step] / norm;
        const auto chosen = static_cast<Math>(x[y]);  // read now: dx may be x itself
        write_row(x, dx, classes, lse[i], scale * weights.total(y, all), scale * weights.spread, weights.weight);
        const Math own = weights.target_share * weights.of_class(y) + weights.spread * weights.of_class(y);
        dx[y] = static_cast<T>(scale * (weights.total(y, all) * vector_exp(chosen - lse[i]) - own));
      }
    });
  }

 private:
  // dx = scale * softmax(x) - spread * w
  template <class T, class Math>
  static void write_row(const T* x, T* dx, int64_t n, Math lse, Math scale, Math spread, const Math* w) {
    if (spread != 0 && w) {
#pragma GCC ivdep
      for (int64_t c = 0; c < n; ++c) {
        dx[c] = static_cast<T>(scale * vector_exp(static_cast<Math>(x[c]) - lse) - spread * w[c]);
      }
      return;
    }
#pragma GCC ivdep
    for (int64_t c = 0; c < n; ++c) dx[c] = static_cast<T>(scale * vector_exp(static_cast<Math>(x[c]) - lse) - spread);
  }
};

}  // namespace

void register_loss() {
  kernels::mse_loss.set(kCPU, elementwise<functors::MseLoss>);
  kernels::mse_loss_backward.set(kCPU, elementwise_backward<functors::MseLoss>);
  kernels::smooth_l1_loss.set(kCPU, elementwise<functors::SmoothL1Loss>);
  kernels::smooth_l1_loss_backward.set(kCPU, elementwise_backward<functors::SmoothL1Loss>);
  kernels::huber_loss.set(kCPU, elementwise<functors::HuberLoss>);
  kernels::huber_loss_backward.set(kCPU, elementwise_backward<functors::HuberLoss>);
  kernels::binary_cross_entropy.set(kCPU, binary_cross_entropy);
  kernels::binary_cross_entropy_backward.set(kCPU, elementwise_backward<functors::BinaryCrossEntropy>);
  set_by_dtype<kernels::nll_loss, NllLossLoop, RealFloatTypes, 2>(kCPU);
  set_by_dtype<kernels::nll_loss_backward, NllLossBackwardLoop, RealFloatTypes>(kCPU);
  set_by_dtype<kernels::cross_entropy, CrossEntropyLoop, RealFloatTypes, 3>(kCPU);
  set_by_dtype<kernels::cross_entropy_backward, CrossEntropyBackwardLoop, RealFloatTypes, 2>(kCPU);
  kernels::cross_entropy_gradient.set_by_parts(kCPU, native::cross_entropy_gradient_by_parts);
}

}  // namespace rush::cpu
