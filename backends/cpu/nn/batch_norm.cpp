#include <cmath>

#include "backends/cpu/loops.h"
#include "backends/cpu/reduce/moments.h"
#include "backends/cpu/register.h"
#include "core/ops/nn/norm.h"

namespace rush::cpu {

namespace {

using kernels::ChannelLayout;

// The numbers of channel c, in the type that arithmetic on T is done in; null pointers stand for weight 1 and bias 0.
template <class T>
struct ChannelParameters {
  using Math = opmath_t<T>;
  const Math *mean, *invstd, *weight, *bias;

  Math scale(int64_t c) const { return weight ? weight[c] * invstd[c] : invstd[c]; }
  Math shift(int64_t c) const { return bias ? bias[c] : Math(0); }
};

// Rows of channels: channels have stride 1, in the parameters and in the elements.
template <class T>
void affine_rows(const T* in, T* out, const ChannelParameters<T>& p, const ChannelLayout& l) {
  using Math = opmath_t<T>;
  std::vector<Math> scale(static_cast<size_t>(l.channels)), shift(scale.size());
  for (int64_t c = 0; c < l.channels; ++c) {
    scale[c] = p.scale(c);
    shift[c] = p.shift(c);
  }
  const int64_t grain = std::max<int64_t>(1, kGrain / std::max<int64_t>(l.channels, 1));
  parallel_for(0, l.outer, grain, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const T* x = in + row * l.channels;
      T* y = out + row * l.channels;
#pragma GCC ivdep
      for (int64_t c = 0; c < l.channels; ++c) {
        y[c] = static_cast<T>((static_cast<Math>(x[c]) - p.mean[c]) * scale[c] + shift[c]);
      }
    }
  });
}

template <class T>
void affine_channel(const T* in, T* out, const ChannelParameters<T>& p, const ChannelLayout& l, int64_t c) {
  using Math = opmath_t<T>;
  const Math mean = p.mean[c], scale = p.scale(c), shift = p.shift(c);
  for (int64_t n = 0; n < l.outer; ++n) {
    const T* x = in + (n * l.channels + c) * l.inner;
    T* y = out + (n * l.channels + c) * l.inner;
#pragma GCC ivdep
    for (int64_t i = 0; i < l.inner; ++i) y[i] = static_cast<T>((static_cast<Math>(x[i]) - mean) * scale + shift);
  }
}

// Calls body(c) for every channel, in parallel over channels, so that a channel that was read for its statistics is
// still in the cache when it is read again.
template <class Body>
void for_each_channel(const ChannelLayout& l, const Body& body) {
  const int64_t grain = std::max<int64_t>(1, kGrain / std::max<int64_t>(4 * l.count(), 1));
  parallel_for(0, l.channels, grain, [&](int64_t begin, int64_t end) {
    for (int64_t c = begin; c < end; ++c) body(c);
  });
}

// Note [Channels as rows]
// When channels are innermost the loops run over whole rows of them. With one position to a channel, (N, C), that is
// how they lie anyway.
bool channels_are_rows(const ChannelLayout& l) { return l.inner == 1; }

struct ChannelAffineLoop {
  template <class T>
  static void run(const Tensor& output, const Tensor& input, const Tensor& mean, const Tensor& invstd,
                  const Tensor& weight, const Tensor& bias, const ChannelLayout& l) {
    using Math = opmath_t<T>;
    const ChannelParameters<T> p{mean.data_ptr<Math>(), invstd.data_ptr<Math>(), data_or_null<Math>(weight),
                                 data_or_null<Math>(bias)};
    const T* in = input.data_ptr<T>();
    T* out = output.data_ptr<T>();
    if (channels_are_rows(l)) return affine_rows(in, out, p, l);
    for_each_channel(l, [&](int64_t c) { affine_channel(in, out, p, l, c); });
  }
};

template <class T>
std::vector<Moments> moments_of_rows(const T* in, const ChannelLayout& l) {
  using Math = opmath_t<T>;
  const auto count = static_cast<double>(l.outer);
  const std::vector<double> sums =
      sum_over_rows<Math>(l.outer, l.channels, l.channels, [&](int64_t begin, int64_t end, Math* total) {
        for (int64_t row = begin; row < end; ++row) {
#pragma GCC ivdep
          for (int64_t c = 0; c < l.channels; ++c) total[c] += static_cast<Math>(in[row * l.channels + c]);
        }
      });
  std::vector<Math> mean(static_cast<size_t>(l.channels));
  for (int64_t c = 0; c < l.channels; ++c) mean[c] = static_cast<Math>(sums[c] / count);
  const std::vector<double> squares =
      sum_over_rows<Math>(l.outer, l.channels, l.channels, [&](int64_t begin, int64_t end, Math* total) {
        for (int64_t row = begin; row < end; ++row) {
#pragma GCC ivdep
          for (int64_t c = 0; c < l.channels; ++c) {
            const Math deviation = static_cast<Math>(in[row * l.channels + c]) - mean[c];
            total[c] += deviation * deviation;
          }
        }
      });
  std::vector<Moments> result(static_cast<size_t>(l.channels));
  for (int64_t c = 0; c < l.channels; ++c) result[c] = {count, sums[c] / count, squares[c]};
  return result;
}

struct BatchNormLoop {
  template <class T>
  static void run(const Tensor& output, const Tensor& mean, const Tensor& var, const Tensor& invstd,
                  const Tensor& input, const Tensor& weight, const Tensor& bias, double eps, bool rounded,
                  const ChannelLayout& l) {
    using Math = opmath_t<T>;
    Math *means = mean.data_ptr<Math>(), *vars = var.data_ptr<Math>(), *invstds = invstd.data_ptr<Math>();
    const ChannelParameters<T> p{means, invstds, data_or_null<Math>(weight), data_or_null<Math>(bias)};
    const T* in = input.data_ptr<T>();
    T* out = output.data_ptr<T>();
    const auto stored = [rounded](double value) {
      return rounded ? static_cast<Math>(static_cast<T>(static_cast<Math>(value))) : static_cast<Math>(value);
    };
    const auto keep = [&](int64_t c, const Moments& m) {
      means[c] = stored(m.mean);
      const double shift = m.mean - static_cast<double>(means[c]);
      const double variance = m.var() + shift * shift;  // about the mean as it is stored
      vars[c] = static_cast<Math>(variance);
      invstds[c] = stored(1 / std::sqrt(static_cast<double>(stored(variance)) + eps));
    };
    if (channels_are_rows(l)) {
      const std::vector<Moments> all = moments_of_rows(in, l);
      for (int64_t c = 0; c < l.channels; ++c) keep(c, all[c]);
      return affine_rows(in, out, p, l);
    }
    for_each_channel(l, [&](int64_t c) {
      Moments m;
      for (int64_t n = 0; n < l.outer; ++n) m.merge(moments(in + (n * l.channels + c) * l.inner, l.inner));
      keep(c, m);
      affine_channel(in, out, p, l, c);
    });
  }
};

// With x^ = (x - mean) invstd, dw = sum(dy x^), db = sum(dy), and
//   dx = w invstd (dy - db / n - x^ dw / n)   when mean and invstd are those of the input's n elements,
//   dx = w invstd dy                          when they are constants.
template <class T>
struct InputGradient {
  using Math = opmath_t<T>;
  Math mean, scale, mean_dy, proj_scale;

  InputGradient(const ChannelParameters<T>& p, int64_t c, double sum, double dot, double count, bool training)
      : mean(p.mean[c]), scale(p.scale(c)) {
    const double invstd = p.invstd[c];
    mean_dy = training ? static_cast<Math>(sum / count) : Math(0);
    proj_scale = training ? static_cast<Math>(dot * invstd * invstd / count) : Math(0);
  }
  Math operator()(T dy, T x) const {
    return (static_cast<Math>(dy) - mean_dy - (static_cast<Math>(x) - mean) * proj_scale) * scale;
  }
};

struct BatchNormBackwardLoop {
  template <class T>
  static void run(const Tensor& grad_input, const Tensor& grad_weight, const Tensor& grad_bias,
                  const Tensor& grad_output, const Tensor& input, const Tensor& mean, const Tensor& invstd,
                  const Tensor& weight, bool training, const ChannelLayout& l) {
    using Math = opmath_t<T>;
    const ChannelParameters<T> p{mean.data_ptr<Math>(), invstd.data_ptr<Math>(), data_or_null<Math>(weight), nullptr};
    Math *dw = data_or_null<Math>(grad_weight), *db = data_or_null<Math>(grad_bias);
    // sum(dy) and sum(dy (x - mean)) of channel c.
    const auto keep = [&](int64_t c, double sum, double dot) {
      if (dw) dw[c] = static_cast<Math>(dot * static_cast<double>(p.invstd[c]));
      if (db) db[c] = static_cast<Math>(sum);
    };
    const T *in = input.data_ptr<T>(), *grad = grad_output.data_ptr<T>();
    T* dx = data_or_null<T>(grad_input);
    if (channels_are_rows(l)) return run_rows(dx, grad, in, p, training, l, keep);
    for_each_channel(l, [&](int64_t c) {
      double sum = 0, dot = 0;
      const Math centre = p.mean[c];
      for (int64_t n = 0; n < l.outer; ++n) {
        const T* dy = grad + (n * l.channels + c) * l.inner;
        const T* x = in + (n * l.channels + c) * l.inner;
        sum += long_sum<Math>(l.inner, [=](int64_t i) { return static_cast<Math>(dy[i]); });
        dot += long_sum<Math>(l.inner,
                              [=](int64_t i) { return static_cast<Math>(dy[i]) * (static_cast<Math>(x[i]) - centre); });
      }
      keep(c, sum, dot);
      if (!dx) return;
      const InputGradient<T> gradient(p, c, sum, dot, static_cast<double>(l.count()), training);
      for (int64_t n = 0; n < l.outer; ++n) {
        const int64_t at = (n * l.channels + c) * l.inner;
#pragma GCC ivdep
        for (int64_t i = 0; i < l.inner; ++i) dx[at + i] = static_cast<T>(gradient(grad[at + i], in[at + i]));
      }
    });
  }

 private:
  template <class T, class Keep>
  static void run_rows(T* dx, const T* grad, const T* in, const ChannelParameters<T>& p, bool training,
                       const ChannelLayout& l, const Keep& keep) {
    using Math = opmath_t<T>;
    const int64_t channels = l.channels;
    const std::vector<double> sums =
        sum_over_rows<Math>(l.outer, 2 * channels, 2 * channels, [&](int64_t begin, int64_t end, Math* total) {
          for (int64_t at = begin * channels; at < end * channels; at += channels) {
#pragma GCC ivdep
            for (int64_t c = 0; c < channels; ++c) {
              total[c] += static_cast<Math>(grad[at + c]);
              total[channels + c] += static_cast<Math>(grad[at + c]) * (static_cast<Math>(in[at + c]) - p.mean[c]);
            }
          }
        });
    for (int64_t c = 0; c < channels; ++c) keep(c, sums[c], sums[channels + c]);
    if (!dx) return;
    // A row of each number, so that the loop over channels vectorises.
    std::vector<Math> scale(static_cast<size_t>(channels)), mean_dy(scale.size()), proj_scale(scale.size());
    for (int64_t c = 0; c < channels; ++c) {
      const InputGradient<T> g(p, c, sums[c], sums[channels + c], static_cast<double>(l.outer), training);
      scale[c] = g.scale;
      mean_dy[c] = g.mean_dy;
      proj_scale[c] = g.proj_scale;
    }
    const int64_t grain = std::max<int64_t>(1, kGrain / std::max<int64_t>(channels, 1));
    parallel_for(0, l.outer, grain, [&](int64_t begin, int64_t end) {
      for (int64_t at = begin * channels; at < end * channels; at += channels) {
#pragma GCC ivdep
        for (int64_t c = 0; c < channels; ++c) {
          const Math deviation = static_cast<Math>(in[at + c]) - p.mean[c];
          dx[at + c] =
              static_cast<T>((static_cast<Math>(grad[at + c]) - mean_dy[c] - deviation * proj_scale[c]) * scale[c]);
        }
      }
    });
  }
};

}  // namespace

void register_batch_norm() {
  set_by_dtype<kernels::channel_affine, ChannelAffineLoop, RealFloatTypes, 1>(kCPU);
  set_by_dtype<kernels::batch_norm, BatchNormLoop, RealFloatTypes, 4>(kCPU);
  set_by_dtype<kernels::batch_norm_backward, BatchNormBackwardLoop, RealFloatTypes, 4>(kCPU);
  kernels::batch_norm_relu.set(kCPU, kernels::batch_norm_relu_in_parts);
  kernels::batch_norm_relu_backward.set(kCPU, kernels::batch_norm_relu_backward_in_parts);
}

}  // namespace rush::cpu
