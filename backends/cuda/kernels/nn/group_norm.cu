// Group norm: the reduction engine computes the statistics of each group, and the rest is element-wise.
#include "backends/cuda/kernels/reduce/reduce_engine.h"
#include "backends/cuda/kernels/reduce/register_reductions.h"
#include "backends/functors/optional_data.h"
#include "backends/functors/reduce.h"
#include "core/ops/nn/norm.h"

namespace rush::cuda {

namespace {

using kernels::GroupLayout;

// Tensors (N, groups, channels in a group, positions). weight null: ones; bias null: zeros.
template <class T>
struct Groups {
  using Math = opmath_t<T>;
  const Math *mean, *rstd, *weight, *bias;
  GroupLayout layout;

  __device__ int64_t group_size() const { return layout.channels * layout.positions; }
  __device__ int64_t group(int64_t i) const { return i / group_size(); }
  __device__ int64_t channel(int64_t i) const { return i / layout.positions % (layout.groups * layout.channels); }
  __device__ Math weight_of(int64_t channel) const { return weight ? weight[channel] : Math(1); }
};

template <class Math>
struct StoreStatistics {
  Math *mean, *rstd;
  double eps;
  __device__ void operator()(int64_t group, const typename functors::Moments<Math, Math>::Acc& acc) const {
    mean[group] = acc.mean;
    rstd[group] =
        static_cast<Math>(1 / std::sqrt(static_cast<double>(acc.squares) / static_cast<double>(acc.count) + eps));
  }
};

template <class T>
struct Affine {
  using Math = opmath_t<T>;
  T* out;
  const T* in;
  Groups<T> groups;
  __device__ void operator()(int64_t i) const {
    const int64_t group = groups.group(i), channel = groups.channel(i);
    const Math shift = groups.bias ? groups.bias[channel] : Math(0);
    out[i] = static_cast<T>(
        (static_cast<Math>(in[i]) - groups.mean[group]) * (groups.weight_of(channel) * groups.rstd[group]) + shift);
  }
};

// As in layer norm, with g = dy w. The sums of dy and of dy (x - mean) over a channel's positions give the input's
// gradient and, summed over all samples, the gradients of bias and weight.
template <class Math>
struct Pair {
  Math sum, dot;
};

template <class T>
struct SumChannels {
  using In = opmath_t<T>;
  using Acc = Pair<In>;
  const T* x;
  Groups<T> groups;
  __device__ Acc identity() const { return {In(0), In(0)}; }
  __device__ Acc take_at(const Acc& acc, In dy, int64_t at, int64_t) const {
    return {acc.sum + dy, acc.dot + dy * (static_cast<In>(x[at]) - groups.mean[groups.group(at)])};
  }
  __device__ Acc combine(const Acc& a, const Acc& b) const { return {a.sum + b.sum, a.dot + b.dot}; }
};

template <class Math>
struct StorePair {
  Pair<Math>* out;
  __device__ void operator()(int64_t at, const Pair<Math>& pair) const { out[at] = pair; }
};

// mean(g) rstd and the factor of x in the gradient, for each group.
template <class T>
struct GroupMeans {
  using Math = opmath_t<T>;
  Groups<T> groups;
  const Pair<Math>* sums;
  Pair<Math>* means;
  __device__ void operator()(int64_t group) const {
    const GroupLayout& l = groups.layout;
    double sum = 0, dot = 0;
    for (int64_t c = 0; c < l.channels; ++c) {
      const double scale = groups.weight_of(group % l.groups * l.channels + c);
      sum += scale * sums[group * l.channels + c].sum;
      dot += scale * sums[group * l.channels + c].dot;
    }
    const double r = groups.rstd[group], size = static_cast<double>(groups.group_size());
    means[group] = {static_cast<Math>(sum * r / size), static_cast<Math>(dot * r * r * r / size)};
  }
};

template <class T>
struct InputGradient {
  using Math = opmath_t<T>;
  T* dx;
  const T *dy, *x;
  Groups<T> groups;
  const Pair<Math>* means;
  __device__ void operator()(int64_t i) const {
    const int64_t group = groups.group(i);
    const Math scale = groups.weight_of(groups.channel(i)) * groups.rstd[group];
    dx[i] = static_cast<T>(static_cast<Math>(dy[i]) * scale - means[group].sum -
                           (static_cast<Math>(x[i]) - groups.mean[group]) * means[group].dot);
  }
};

template <class T>
struct ParameterGradients {
  using Math = opmath_t<T>;
  Math *dw, *db;
  Groups<T> groups;
  const Pair<Math>* sums;
  __device__ void operator()(int64_t channel) const {
    const GroupLayout& l = groups.layout;
    const int64_t channels = l.groups * l.channels;
    double weight = 0, bias = 0;
    for (int64_t n = 0; n < l.batch; ++n) {
      const Pair<Math>& pair = sums[n * channels + channel];
      weight += static_cast<double>(pair.dot) * static_cast<double>(groups.rstd[n * l.groups + channel / l.channels]);
      bias += pair.sum;
    }
    if (dw) dw[channel] = static_cast<Math>(weight);
    if (db) db[channel] = static_cast<Math>(bias);
  }
};

struct GroupNormLoop {
  template <class T>
  static void run(const Tensor& output, const Tensor& mean, const Tensor& rstd, const Tensor& input,
                  const Tensor& weight, const Tensor& bias, double eps, const GroupLayout& l) {
    using Math = opmath_t<T>;
    const char* op = kernels::group_norm.name();
    const int64_t size = l.channels * l.positions;
    reduce_dims(op, input.data_ptr<T>(), functors::Moments<Math, Math>(),
                StoreStatistics<Math>{mean.data_ptr<Math>(), rstd.data_ptr<Math>(), eps},
                {{l.batch * l.groups, size, 1, false}, {size, 1, 0, true}});
    for_each_index(op, input.numel(),
                   Affine<T>{output.data_ptr<T>(), input.data_ptr<T>(),
                             Groups<T>{mean.data_ptr<Math>(), rstd.data_ptr<Math>(), data_or_null<Math>(weight),
                                       data_or_null<Math>(bias), l}});
  }
};

struct GroupNormBackwardLoop {
  template <class T>
  static void run(const Tensor& grad_input, const Tensor& grad_weight, const Tensor& grad_bias,
                  const Tensor& grad_output, const Tensor& input, const Tensor& mean, const Tensor& rstd,
                  const Tensor& weight, const GroupLayout& l) {
    using Math = opmath_t<T>;
    const char* op = kernels::group_norm_backward.name();
    const Groups<T> groups{mean.data_ptr<Math>(), rstd.data_ptr<Math>(), data_or_null<Math>(weight), nullptr, l};
    const T *x = input.data_ptr<T>(), *dy = grad_output.data_ptr<T>();
    const int64_t channels = l.groups * l.channels, rows = l.batch * channels;
    const Scratch memory(static_cast<size_t>(rows + l.batch * l.groups) * sizeof(Pair<Math>));
    auto* sums = memory.as<Pair<Math>>();
    auto* means = sums + rows;
    reduce_dims(op, dy, SumChannels<T>{x, groups}, StorePair<Math>{sums},
                {{rows, l.positions, 1, false}, {l.positions, 1, 0, true}});
    if (grad_input.defined()) {
      for_each_index(op, l.batch * l.groups, GroupMeans<T>{groups, sums, means});
      for_each_index(op, input.numel(), InputGradient<T>{grad_input.data_ptr<T>(), dy, x, groups, means});
    }
    if (!grad_weight.defined() && !grad_bias.defined()) return;
    for_each_index(op, channels,
                   ParameterGradients<T>{data_or_null<Math>(grad_weight), data_or_null<Math>(grad_bias), groups, sums});
  }
};

}  // namespace

void register_group_norm() {
  set_by_dtype<kernels::group_norm, GroupNormLoop, RealFloatTypes, 3>(kCUDA);
  set_by_dtype<kernels::group_norm_backward, GroupNormBackwardLoop, RealFloatTypes, 4>(kCUDA);
}

}  // namespace rush::cuda
