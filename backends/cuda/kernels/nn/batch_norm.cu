// Batch norm: of rows of channels by our own kernels, else through cuDNN, and for what neither takes, statistics by the
// reduction engine and the rest element by element.
#include "backends/cuda/dnn/batch_norm.h"
#include "backends/cuda/kernels/nn/batch_norm_rows.h"
#include "backends/cuda/kernels/reduce/reduce_engine.h"
#include "backends/cuda/kernels/reduce/register_reductions.h"
#include "backends/functors/optional_data.h"
#include "backends/functors/reduce.h"
#include "core/ops/nn/norm.h"
#include "core/ops/nn/running_statistics.h"

namespace rush::cuda {

namespace {

using kernels::ChannelLayout;

ReduceDims over_channels(const ChannelLayout& l) {
  return {{l.outer, l.channels * l.inner, 0, true}, {l.channels, l.inner, 1, false}, {l.inner, 1, 0, true}};
}

// The numbers of channel c; null stands for weight 1 and bias 0.
template <class T>
struct Channels {
  using Math = opmath_t<T>;
  const Math *mean, *invstd, *weight, *bias;
  ChannelLayout layout;

  __device__ int64_t of(int64_t i) const { return i / layout.inner % layout.channels; }
  __device__ Math scale(int64_t c) const { return weight ? weight[c] * invstd[c] : invstd[c]; }
};

template <class T>
struct Affine {
  using Math = opmath_t<T>;
  T* out;
  const T* in;
  Channels<T> channels;
  __device__ void operator()(int64_t i) const {
    const int64_t c = channels.of(i);
    const Math shift = channels.bias ? channels.bias[c] : Math(0);
    out[i] = static_cast<T>((static_cast<Math>(in[i]) - channels.mean[c]) * channels.scale(c) + shift);
  }
};

template <class T>
struct StoreStatistics {
  using Math = opmath_t<T>;
  Math *mean, *variance, *invstd;
  double eps;
  bool rounded;  // to T

  __device__ Math stored(double value) const {
    const Math math = static_cast<Math>(value);
    return rounded ? static_cast<Math>(static_cast<T>(math)) : math;
  }
  __device__ void operator()(int64_t c, const typename functors::Moments<Math, Math>::Acc& acc) const {
    mean[c] = stored(static_cast<double>(acc.mean));
    const double shift = static_cast<double>(acc.mean) - static_cast<double>(mean[c]);
    // About the mean as it is stored.
    const double about = static_cast<double>(acc.squares) / static_cast<double>(acc.count) + shift * shift;
    variance[c] = static_cast<Math>(about);
    invstd[c] = stored(1 / std::sqrt(static_cast<double>(stored(about)) + eps));
  }
};

// With x^ = (x - mean) invstd, dw = sum(dy x^), db = sum(dy), and
//   dx = w invstd (dy - db / n - x^ dw / n)   when mean and invstd are those of the input's n elements,
//   dx = w invstd dy                          when they are constants.
template <class Math>
struct GradientSums {
  Math sum, dot;  // of dy, and of dy (x - mean)
};

template <class T>
struct SumGradients {
  using In = opmath_t<T>;
  using Acc = GradientSums<In>;
  const T* x;
  Channels<T> channels;
  __device__ Acc identity() const { return {In(0), In(0)}; }
  __device__ Acc take_at(const Acc& acc, In dy, int64_t at, int64_t) const {
    return {acc.sum + dy, acc.dot + dy * (static_cast<In>(x[at]) - channels.mean[channels.of(at)])};
  }
  __device__ Acc combine(const Acc& a, const Acc& b) const { return {a.sum + b.sum, a.dot + b.dot}; }
};

template <class Math>
struct StoreGradientSums {
  GradientSums<Math>* sums;
  Math *dw, *db;
  const Math* invstd;
  __device__ void operator()(int64_t c, const GradientSums<Math>& total) const {
    sums[c] = total;
    if (dw) dw[c] = total.dot * invstd[c];
    if (db) db[c] = total.sum;
  }
};

template <class T>
struct InputGradient {
  using Math = opmath_t<T>;
  T* dx;
  const T *dy, *x;
  Channels<T> channels;
  const GradientSums<Math>* sums;
  bool training;
  __device__ void operator()(int64_t i) const {
    const int64_t c = channels.of(i);
    Math value = static_cast<Math>(dy[i]);
    if (training) {
      const Math count = static_cast<Math>(channels.layout.outer * channels.layout.inner), invstd = channels.invstd[c];
      value -= sums[c].sum / count;
      value -= (static_cast<Math>(x[i]) - channels.mean[c]) * (sums[c].dot * invstd * invstd / count);
    }
    dx[i] = static_cast<T>(value * channels.scale(c));
  }
};

struct AffineLoop {
  template <class T>
  static void run(const Tensor& output, const Tensor& input, const Tensor& mean, const Tensor& invstd,
                  const Tensor& weight, const Tensor& bias, const ChannelLayout& l) {
    using Math = opmath_t<T>;
    for_each_index("batch_norm", input.numel(),
                   Affine<T>{output.data_ptr<T>(), input.data_ptr<T>(),
                             Channels<T>{mean.data_ptr<Math>(), invstd.data_ptr<Math>(), data_or_null<Math>(weight),
                                         data_or_null<Math>(bias), l}});
  }
};

struct StatisticsLoop {
  template <class T>
  static void run(const Tensor& mean, const Tensor& var, const Tensor& invstd, const Tensor& input, double eps,
                  bool rounded, const ChannelLayout& l) {
    using Math = opmath_t<T>;
    reduce_dims("batch_norm", input.data_ptr<T>(), functors::Moments<Math, Math>(),
                StoreStatistics<T>{mean.data_ptr<Math>(), var.data_ptr<Math>(), invstd.data_ptr<Math>(), eps, rounded},
                over_channels(l));
  }
};

struct BackwardLoop {
  template <class T>
  static void run(const Tensor& grad_input, const Tensor& grad_weight, const Tensor& grad_bias,
                  const Tensor& grad_output, const Tensor& input, const Tensor& mean, const Tensor& invstd,
                  const Tensor& weight, bool training, const ChannelLayout& l) {
    using Math = opmath_t<T>;
    const char* op = kernels::batch_norm_backward.name();
    const Channels<T> channels{mean.data_ptr<Math>(), invstd.data_ptr<Math>(), data_or_null<Math>(weight), nullptr, l};
    const T *x = input.data_ptr<T>(), *dy = grad_output.data_ptr<T>();
    const Scratch memory(static_cast<size_t>(l.channels) * sizeof(GradientSums<Math>));
    auto* sums = memory.as<GradientSums<Math>>();
    reduce_dims(
        op, dy, SumGradients<T>{x, channels},
        StoreGradientSums<Math>{sums, data_or_null<Math>(grad_weight), data_or_null<Math>(grad_bias), channels.invstd},
        over_channels(l));
    if (!grad_input.defined()) return;
    for_each_index(op, input.numel(), InputGradient<T>{grad_input.data_ptr<T>(), dy, x, channels, sums, training});
  }
};

void channel_affine(const Tensor& output, const Tensor& input, const Tensor& mean, const Tensor& invstd,
                    const Tensor& weight, const Tensor& bias, const ChannelLayout& layout) {
  if (are_channel_rows(layout, {output, input})) {
    return affine_rows(output, input, {}, mean, invstd, weight, bias, /*relu=*/false, layout);
  }
  pick<AffineLoop>(RealFloatTypes(), input.scalar_type(), "batch_norm")(output, input, mean, invstd, weight, bias,
                                                                        layout);
}

void batch_norm(const Tensor& output, const Tensor& mean, const Tensor& var, const Tensor& invstd, const Tensor& input,
                const Tensor& weight, const Tensor& bias, double eps, bool rounded, const ChannelLayout& layout) {
  if (are_channel_rows(layout, {output, input})) {
    row_statistics(mean, var, invstd, input, eps, rounded, layout);
    return affine_rows(output, input, {}, mean, invstd, weight, bias, /*relu=*/false, layout);
  }
  if (dnn_batch_norm(output, mean, var, invstd, input, weight, bias, eps, rounded, layout)) return;
  pick<StatisticsLoop>(RealFloatTypes(), input.scalar_type(), "batch_norm")(mean, var, invstd, input, eps, rounded,
                                                                            layout);
  channel_affine(output, input, mean, invstd, weight, bias, layout);
}

void batch_norm_backward(const Tensor& grad_input, const Tensor& grad_weight, const Tensor& grad_bias,
                         const Tensor& grad_output, const Tensor& input, const Tensor& mean, const Tensor& invstd,
                         const Tensor& weight, bool training, const ChannelLayout& layout) {
  if (are_channel_rows(layout, {grad_input, grad_output, input})) {
    return batch_norm_backward_rows(grad_input, grad_weight, grad_bias, grad_output, input, mean, invstd, weight,
                                    training, {}, layout);
  }
  if (dnn_batch_norm_backward(grad_input, grad_weight, grad_bias, grad_output, input, mean, invstd, weight, training,
                              layout)) {
    return;
  }
  pick<BackwardLoop>(RealFloatTypes(), input.scalar_type(), "batch_norm_backward")(
      grad_input, grad_weight, grad_bias, grad_output, input, mean, invstd, weight, training, layout);
}

void batch_norm_relu(const Tensor& output, const Tensor& mean, const Tensor& var, const Tensor& invstd,
                     const Tensor& input, const Tensor& residual, const Tensor& weight, const Tensor& bias, double eps,
                     bool rounded, const ChannelLayout& layout) {
  if (!are_channel_rows(layout, {output, input, residual})) {
    return kernels::batch_norm_relu_in_parts(output, mean, var, invstd, input, residual, weight, bias, eps, rounded,
                                             layout);
  }
  row_statistics(mean, var, invstd, input, eps, rounded, layout);
  affine_rows(output, input, residual, mean, invstd, weight, bias, /*relu=*/true, layout);
}

void batch_norm_relu_backward(const Tensor& grad_input, const Tensor& gated, const Tensor& grad_weight,
                              const Tensor& grad_bias, const Tensor& grad_output, const Tensor& output,
                              const Tensor& input, const Tensor& mean, const Tensor& invstd, const Tensor& weight,
                              const Tensor& bias, const ChannelLayout& layout) {
  if (!are_channel_rows(layout, {grad_input, gated, grad_output, output, input})) {
    return kernels::batch_norm_relu_backward_in_parts(grad_input, gated, grad_weight, grad_bias, grad_output, output,
                                                      input, mean, invstd, weight, bias, layout);
  }
  const ReluGate gate = gated.defined() ? ReluGate{ReluGate::ByOutput, bias, output, gated}
                                        : ReluGate{ReluGate::Recomputed, bias, {}, {}};
  batch_norm_backward_rows(grad_input, grad_weight, grad_bias, grad_output, input, mean, invstd, weight,
                           /*training=*/true, gate, layout);
}

template <class T>
struct MoveStatistics {
  T *running_mean, *running_var;
  const T *mean, *var;
  T kept, momentum, of_var;
  __device__ void operator()(int64_t i) const {
    running_mean[i] = kept * running_mean[i] + momentum * mean[i];
    running_var[i] = kept * running_var[i] + of_var * var[i];
  }
};

void running_statistics(const Tensor& running_mean, const Tensor& running_var, const Tensor& mean, const Tensor& var,
                        double momentum, double unbias) {
  const auto move = [&](auto like) {
    using T = decltype(like);
    for_each_index(
        "batch_norm", mean.numel(),
        MoveStatistics<T>{running_mean.data_ptr<T>(), running_var.data_ptr<T>(), mean.data_ptr<T>(), var.data_ptr<T>(),
                          static_cast<T>(1 - momentum), static_cast<T>(momentum), static_cast<T>(momentum * unbias)});
  };
  mean.scalar_type() == kFloat64 ? move(double()) : move(float());
}

}  // namespace

void register_batch_norm() {
  kernels::running_statistics.set(kCUDA, running_statistics);
  kernels::channel_affine.set(kCUDA, channel_affine);
  kernels::batch_norm.set(kCUDA, batch_norm);
  kernels::batch_norm_backward.set(kCUDA, batch_norm_backward);
  kernels::batch_norm_relu.set(kCUDA, batch_norm_relu);
  kernels::batch_norm_relu_backward.set(kCUDA, batch_norm_relu_backward);
}

}  // namespace rush::cuda
