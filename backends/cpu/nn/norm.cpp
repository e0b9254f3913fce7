// Layer norm, RMS norm and group norm: each row, or group, is normalised by itself.
#include "core/ops/nn/norm.h"

#include <cmath>

#include "backends/cpu/loops.h"
#include "backends/cpu/reduce/moments.h"
#include "backends/cpu/register.h"

namespace rush::cpu {

namespace {

// y = (x - mean) * rstd * w + b
template <class T, bool kWeight, bool kBias>
void normalize_row(const T* x, T* y, int64_t n, opmath_t<T> mean, opmath_t<T> rstd, const opmath_t<T>* w,
                   const opmath_t<T>* b) {
  using Math = opmath_t<T>;
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) {
    Math value = (static_cast<Math>(x[i]) - mean) * rstd;
    if constexpr (kWeight) value *= w[i];
    if constexpr (kBias) value += b[i];
    y[i] = static_cast<T>(value);
  }
}

struct LayerNormLoop {
  template <class T>
  static void run(const Tensor& output, const Tensor& mean, const Tensor& rstd, const Tensor& input,
                  const Tensor& weight, const Tensor& bias, int64_t columns, double eps) {
    using Math = opmath_t<T>;
    const T* in = input.data_ptr<T>();
    T* out = output.data_ptr<T>();
    Math *means = data_or_null<Math>(mean), *rstds = rstd.data_ptr<Math>();
    const Math *w = data_or_null<Math>(weight), *b = data_or_null<Math>(bias);
    const auto write = w   ? (b ? normalize_row<T, true, true> : normalize_row<T, true, false>)
                       : b ? normalize_row<T, false, true>
                           : normalize_row<T, false, false>;
    const int64_t grain = std::max<int64_t>(1, kGrain / (4 * std::max<int64_t>(columns, 1)));
    parallel_for(0, rstd.numel(), grain, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        const T* x = in + row * columns;
        double centre = 0, var = 0;
        if (means) {
          const Moments m = moments(x, columns);
          centre = m.mean;
          var = m.var();
          means[row] = static_cast<Math>(centre);
        } else {
          var = long_sum<Math>(columns, [=](int64_t i) { return static_cast<Math>(x[i]) * static_cast<Math>(x[i]); }) /
                static_cast<double>(columns);
        }
        rstds[row] = static_cast<Math>(1 / std::sqrt(var + eps));
        write(x, out + row * columns, columns, static_cast<Math>(centre), rstds[row], w, b);
      }
    });
  }
};

// One row of the backward pass. With x^ = (x - mean) rstd and g = dy w,
//   dx = rstd (g - mean(g) - x^ mean(g x^)),
// where RMS norm lacks mean(g); dy x^ and dy are added to dw and db.
template <class T>
struct LayerNormRow {
  using Math = opmath_t<T>;
  const T *dy, *x;
  const Math* w;  // null: ones
  Math mean, rstd;
  int64_t n;

  template <bool kWeight>
  void input_gradient(T* dx, bool centred) const {
    const auto g = [this](int64_t i) {
      if constexpr (kWeight) return static_cast<Math>(dy[i]) * w[i];
      return static_cast<Math>(dy[i]);
    };
    const auto hat = [this](int64_t i) { return (static_cast<Math>(x[i]) - mean) * rstd; };
    const Math mean_g = centred ? static_cast<Math>(long_sum<Math>(n, g) / static_cast<double>(n)) : Math(0);
    const auto product = [&](int64_t i) { return g(i) * hat(i); };
    const Math mean_gx = static_cast<Math>(long_sum<Math>(n, product) / static_cast<double>(n));
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) dx[i] = static_cast<T>((g(i) - mean_g - hat(i) * mean_gx) * rstd);
  }
  void add_weight_gradient(Math* dw) const {
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) dw[i] += static_cast<Math>(dy[i]) * ((static_cast<Math>(x[i]) - mean) * rstd);
  }
  void add_bias_gradient(Math* db) const {
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) db[i] += static_cast<Math>(dy[i]);
  }
};

struct LayerNormBackwardLoop {
  template <class T>
  static void run(const Tensor& grad_input, const Tensor& grad_weight, const Tensor& grad_bias,
                  const Tensor& grad_output, const Tensor& input, const Tensor& mean, const Tensor& rstd,
                  const Tensor& weight, int64_t columns) {
    using Math = opmath_t<T>;
    const T *in = input.data_ptr<T>(), *dy = grad_output.data_ptr<T>();
    T* dx = data_or_null<T>(grad_input);
    const Math *means = data_or_null<Math>(mean), *rstds = rstd.data_ptr<Math>(), *w = data_or_null<Math>(weight);
    Math *dw = data_or_null<Math>(grad_weight), *db = data_or_null<Math>(grad_bias);
    const int64_t weights = dw ? columns : 0, biases = db ? columns : 0;
    const auto add_rows = [&](int64_t begin, int64_t end, Math* sums) {
      for (int64_t row = begin; row < end; ++row) {
        const LayerNormRow<T> r{dy + row * columns,           in + row * columns, w,
                                means ? means[row] : Math(0), rstds[row],         columns};
        if (dx && w) r.template input_gradient<true>(dx + row * columns, means);
        if (dx && !w) r.template input_gradient<false>(dx + row * columns, means);
        if (dw) r.add_weight_gradient(sums);
        if (db) r.add_bias_gradient(sums + weights);
      }
    };
    const std::vector<double> totals = sum_over_rows<Math>(rstd.numel(), weights + biases, 4 * columns, add_rows);
    for (int64_t i = 0; i < weights; ++i) dw[i] = static_cast<Math>(totals[i]);
    for (int64_t i = 0; i < biases; ++i) db[i] = static_cast<Math>(totals[weights + i]);
  }
};

struct GroupNormLoop {
  template <class T>
  static void run(const Tensor& output, const Tensor& mean, const Tensor& rstd, const Tensor& input,
                  const Tensor& weight, const Tensor& bias, double eps, const kernels::GroupLayout& l) {
    using Math = opmath_t<T>;
    const T* in = input.data_ptr<T>();
    T* out = output.data_ptr<T>();
    Math *means = mean.data_ptr<Math>(), *rstds = rstd.data_ptr<Math>();
    const Math *w = data_or_null<Math>(weight), *b = data_or_null<Math>(bias);
    const int64_t size = l.channels * l.positions;
    const int64_t grain = std::max<int64_t>(1, kGrain / (4 * std::max<int64_t>(size, 1)));
    parallel_for(0, l.batch * l.groups, grain, [&](int64_t begin, int64_t end) {
      for (int64_t group = begin; group < end; ++group) {
        const Moments m = moments(in + group * size, size);
        const auto centre = static_cast<Math>(m.mean), r = static_cast<Math>(1 / std::sqrt(m.var() + eps));
        means[group] = centre;
        rstds[group] = r;
        for (int64_t c = 0; c < l.channels; ++c) {
          const int64_t channel = group % l.groups * l.channels + c;
          const Math scale = w ? w[channel] * r : r;
          const Math shift = b ? b[channel] : Math(0);
          const T* x = in + group * size + c * l.positions;
          T* y = out + group * size + c * l.positions;
#pragma GCC ivdep
          for (int64_t i = 0; i < l.positions; ++i) {
            y[i] = static_cast<T>((static_cast<Math>(x[i]) - centre) * scale + shift);
          }
        }
      }
    });
  }
};

// As for layer norm, with g = dy w, where w is one number for each channel. The sums over a channel's positions of dy
// and of dy (x - mean) serve the input's gradient and, over all samples, those of bias and weight.
struct GroupNormBackwardLoop {
  template <class T>
  static void run(const Tensor& grad_input, const Tensor& grad_weight, const Tensor& grad_bias,
                  const Tensor& grad_output, const Tensor& input, const Tensor& mean, const Tensor& rstd,
                  const Tensor& weight, const kernels::GroupLayout& l) {
    using Math = opmath_t<T>;
    const T *in = input.data_ptr<T>(), *grad = grad_output.data_ptr<T>();
    T* dx = data_or_null<T>(grad_input);
    const Math *means = mean.data_ptr<Math>(), *rstds = rstd.data_ptr<Math>(), *w = data_or_null<Math>(weight);
    const int64_t all_channels = l.groups * l.channels, size = l.channels * l.positions;
    std::vector<double> sums(static_cast<size_t>(l.batch * all_channels)), dots(sums.size());
    const int64_t grain = std::max<int64_t>(1, kGrain / (4 * std::max<int64_t>(size, 1)));
    parallel_for(0, l.batch * l.groups, grain, [&](int64_t begin, int64_t end) {
      for (int64_t group = begin; group < end; ++group) {
        const Math centre = means[group];
        double sum_g = 0, dot_g = 0;
        for (int64_t c = 0; c < l.channels; ++c) {
          const T* x = in + group * size + c * l.positions;
          const T* dy = grad + group * size + c * l.positions;
          const double sum = long_sum<Math>(l.positions, [=](int64_t i) { return static_cast<Math>(dy[i]); });
          const double dot = long_sum<Math>(
              l.positions, [=](int64_t i) { return static_cast<Math>(dy[i]) * (static_cast<Math>(x[i]) - centre); });
          sums[group * l.channels + c] = sum;
          dots[group * l.channels + c] = dot;
          const double scale = w ? static_cast<double>(w[group % l.groups * l.channels + c]) : 1.0;
          sum_g += scale * sum;
          dot_g += scale * dot;
        }
        if (!dx) continue;
        const double r = rstds[group];
        const Math mean_g = static_cast<Math>(sum_g * r / static_cast<double>(size));
        const Math proj_scale = static_cast<Math>(dot_g * r * r * r / static_cast<double>(size));
        for (int64_t c = 0; c < l.channels; ++c) {
          const int64_t at = group * size + c * l.positions;
          const Math scale = w ? w[group % l.groups * l.channels + c] * rstds[group] : rstds[group];
#pragma GCC ivdep
          for (int64_t i = 0; i < l.positions; ++i) {
            dx[at + i] = static_cast<T>(static_cast<Math>(grad[at + i]) * scale - mean_g -
                                        (static_cast<Math>(in[at + i]) - centre) * proj_scale);
          }
        }
      }
    });
    Math *dw = data_or_null<Math>(grad_weight), *db = data_or_null<Math>(grad_bias);
    for (int64_t c = 0; c < all_channels; ++c) {
      double weight_total = 0, bias_total = 0;
      for (int64_t n = 0; n < l.batch; ++n) {
        weight_total += dots[n * all_channels + c] * static_cast<double>(rstds[n * l.groups + c / l.channels]);
        bias_total += sums[n * all_channels + c];
      }
      if (dw) dw[c] = static_cast<Math>(weight_total);
      if (db) db[c] = static_cast<Math>(bias_total);
    }
  }
};

}  // namespace

void register_norm() {
  set_by_dtype<kernels::layer_norm, LayerNormLoop, RealFloatTypes, 3>(kCPU);
  set_by_dtype<kernels::layer_norm_backward, LayerNormBackwardLoop, RealFloatTypes, 4>(kCPU);
  set_by_dtype<kernels::group_norm, GroupNormLoop, RealFloatTypes, 3>(kCPU);
  set_by_dtype<kernels::group_norm_backward, GroupNormBackwardLoop, RealFloatTypes, 4>(kCPU);
}

}  // namespace rush::cpu
