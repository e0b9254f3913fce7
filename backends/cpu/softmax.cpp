// softmax, log_softmax and logsumexp: along the last dimension row by row, along another one a tile of columns at a
// time. 16-bit inputs are computed in float; their exponentials are computed twice rather than rounded in between.
#include "core/ops/softmax.h"

#include "backends/cpu/loops.h"
#include "backends/cpu/reduce_loops.h"
#include "backends/cpu/register.h"
#include "backends/cpu/vector_exp.h"
#include "backends/functors/reduce.h"

namespace rush::cpu {

namespace {

constexpr int64_t kTile = 256;        // columns
constexpr int64_t kExpGrain = 4096;   // elements; an exponential is dear
using reduce::kLanes;

// Calls row(r) for every row, or tile(first element, columns, first column's number) for every tile of columns.
template <class Row, class Tile>
void for_lines(const AlongDim& shape, const Row& row, const Tile& tile) {
  if (shape.inner == 1) {
    const int64_t grain = std::max<int64_t>(1, kExpGrain / std::max<int64_t>(shape.size, 1));
    return parallel_for(0, shape.outer, grain, [&](int64_t begin, int64_t end) {
      for (; begin < end; ++begin) row(begin);
    });
  }
  const int64_t tiles = (shape.inner + kTile - 1) / kTile;
  const int64_t work = std::max<int64_t>(1, shape.size * std::min(kTile, shape.inner));
  parallel_for(0, shape.outer * tiles, std::max<int64_t>(1, kExpGrain / work), [&](int64_t begin, int64_t end) {
    for (; begin < end; ++begin) {
      const int64_t outer = begin / tiles, first = begin % tiles * kTile;
      tile(outer * shape.size * shape.inner + first, std::min(kTile, shape.inner - first), outer * shape.inner + first);
    }
  });
}

template <class T>
opmath_t<T> row_max(const T* x, int64_t n) {
  using F = functors::Max<opmath_t<T>>;
  const F f;
  opmath_t<T> max;
  reduce::block<F, T>(&f, reinterpret_cast<const char*>(x), 1, n, &max);
  return max;
}

// sum f(i) over [0, n), in lanes.
template <class Math, class F>
RUSH_ALWAYS_INLINE Math sum_lanes(int64_t n, const F& f) {
  Math lanes[kLanes] = {};
  int64_t i = 0;
  for (; n - i >= kLanes; i += kLanes) {
#pragma GCC ivdep
    for (int k = 0; k < kLanes; ++k) lanes[k] += f(i + k);
  }
  for (int width = kLanes / 2; width > 0; width /= 2) {
    for (int k = 0; k < width; ++k) lanes[k] += lanes[k + width];
  }
  for (; i < n; ++i) lanes[0] += f(i);
  return lanes[0];
}

template <class T>
void softmax_row(T* out, const T* x, int64_t n, bool log) {
  using Math = opmath_t<T>;
  const Math max = row_max(x, n);
  if (log) {
    const Math sum = sum_lanes<Math>(n, [&](int64_t i) { return vector_exp(Math(x[i]) - max); });
    const Math shift = max + std::log(sum);
    for (int64_t i = 0; i < n; ++i) out[i] = static_cast<T>(Math(x[i]) - shift);
  } else if constexpr (std::is_same_v<T, Math>) {
    const Math scale = 1 / sum_lanes<Math>(n, [&](int64_t i) { return out[i] = vector_exp(x[i] - max); });
    for (int64_t i = 0; i < n; ++i) out[i] *= scale;
  } else {
    const Math scale = 1 / sum_lanes<Math>(n, [&](int64_t i) { return vector_exp(Math(x[i]) - max); });
    for (int64_t i = 0; i < n; ++i) out[i] = static_cast<T>(vector_exp(Math(x[i]) - max) * scale);
  }
}

// The largest element of each column, and the sum of exp(x - largest). A largest one that is infinite is taken for 0
// where `finite` is asked for, so that the sum is the infinity or the zero that it stands for.
template <class T>
void column_sums(const T* x, const AlongDim& shape, int64_t columns, opmath_t<T>* max, opmath_t<T>* sum, bool finite) {
  using Math = opmath_t<T>;
  std::fill_n(max, columns, functors::lowest_of<Math>());
  std::fill_n(sum, columns, Math(0));
  for (int64_t i = 0; i < shape.size; ++i) {
    const T* row = x + i * shape.inner;
#pragma GCC ivdep
    for (int64_t c = 0; c < columns; ++c) max[c] = functors::TakeMax()(max[c], Math(row[c]));
  }
  for (int64_t c = 0; finite && c < columns; ++c) {
    if (std::isinf(max[c])) max[c] = 0;
  }
  for (int64_t i = 0; i < shape.size; ++i) {
    const T* row = x + i * shape.inner;
#pragma GCC ivdep
    for (int64_t c = 0; c < columns; ++c) sum[c] += vector_exp(Math(row[c]) - max[c]);
  }
}

struct SoftmaxLoop {
  template <class T>
  static void run(const Tensor& output, const Tensor& input, const AlongDim& shape, bool log) {
    using Math = opmath_t<T>;
    const T* x = input.const_data_ptr<T>();
    T* out = output.data_ptr<T>();
    for_lines(
        shape, [&](int64_t r) { softmax_row(out + r * shape.size, x + r * shape.size, shape.size, log); },
        [&](int64_t start, int64_t columns, int64_t) {
          Math max[kTile], sum[kTile];
          column_sums(x + start, shape, columns, max, sum, false);
          for (int64_t c = 0; c < columns; ++c) sum[c] = log ? max[c] + std::log(sum[c]) : 1 / sum[c];
          for (int64_t i = 0; i < shape.size; ++i) {
            const T* from = x + start + i * shape.inner;
            T* to = out + start + i * shape.inner;
            if (log) {
              for (int64_t c = 0; c < columns; ++c) to[c] = static_cast<T>(Math(from[c]) - sum[c]);
            } else {
#pragma GCC ivdep
              for (int64_t c = 0; c < columns; ++c) {
                to[c] = static_cast<T>(vector_exp(Math(from[c]) - max[c]) * sum[c]);
              }
            }
          }
        });
  }
};

// One element of the gradient, given what was summed over its line.
template <class Math>
RUSH_ALWAYS_INLINE Math backward_one(Math grad, Math out, Math sum, bool log) {
  return log ? grad - vector_exp(out) * sum : (grad - sum) * out;
}

struct SoftmaxBackwardLoop {
  template <class T>
  static void run(const Tensor& grad_input, const Tensor& grad, const Tensor& output, const AlongDim& shape, bool log) {
    if (log) {
      lines<T, true>(grad_input.data_ptr<T>(), grad.data_ptr<T>(), output.data_ptr<T>(), shape);
    } else {
      lines<T, false>(grad_input.data_ptr<T>(), grad.data_ptr<T>(), output.data_ptr<T>(), shape);
    }
  }

 private:
  template <class T, bool log>
  static void lines(T* result, const T* grad, const T* output, const AlongDim& shape) {
    using Math = opmath_t<T>;
    const int64_t n = shape.size;
    for_lines(
        shape,
        [&](int64_t r) {
          const T *g = grad + r * n, *o = output + r * n;
          T* to = result + r * n;
          const Math sum = sum_lanes<Math>(n, [&](int64_t i) { return log ? Math(g[i]) : Math(g[i]) * Math(o[i]); });
#pragma GCC ivdep
          for (int64_t i = 0; i < n; ++i) to[i] = static_cast<T>(backward_one<Math>(g[i], o[i], sum, log));
        },
        [&](int64_t start, int64_t columns, int64_t) {
          Math sum[kTile] = {};
          for (int64_t i = 0; i < n; ++i) {
            const T *g = grad + start + i * shape.inner, *o = output + start + i * shape.inner;
            for (int64_t c = 0; c < columns; ++c) sum[c] += log ? Math(g[c]) : Math(g[c]) * Math(o[c]);
          }
          for (int64_t i = 0; i < n; ++i) {
            const T *g = grad + start + i * shape.inner, *o = output + start + i * shape.inner;
            T* to = result + start + i * shape.inner;
#pragma GCC ivdep
            for (int64_t c = 0; c < columns; ++c) to[c] = static_cast<T>(backward_one<Math>(g[c], o[c], sum[c], log));
          }
        });
  }
};

// One line of complex numbers: the largest real part is taken out.
template <class T>
complex<T> complex_logsumexp(const complex<T>* x, int64_t n, int64_t stride) {
  T max = functors::lowest_of<T>();
  for (int64_t i = 0; i < n; ++i) max = functors::TakeMax()(max, x[i * stride].real());
  if (std::isinf(max)) max = 0;
  complex<T> sum(0);
  for (int64_t i = 0; i < n; ++i) sum += exp(x[i * stride] - complex<T>(max));
  return log(sum) + complex<T>(max);
}

struct LogSumExpLoop {
  template <class T>
  static void run(const Tensor& output, const Tensor& input, const AlongDim& shape) {
    using Math = opmath_t<T>;
    const T* x = input.const_data_ptr<T>();
    T* out = output.data_ptr<T>();
    const int64_t n = shape.size;
    if constexpr (is_complex_v<T>) {
      const auto line = [&](int64_t start) { return complex_logsumexp(x + start, n, shape.inner); };
      for_lines(
          shape, [&](int64_t r) { out[r] = line(r * n); },
          [&](int64_t start, int64_t columns, int64_t first) {
            for (int64_t c = 0; c < columns; ++c) out[first + c] = line(start + c);
          });
    } else {
      for_lines(
          shape,
          [&](int64_t r) {
            const T* row = x + r * n;
            Math max = row_max(row, n);
            if (std::isinf(max)) max = 0;
            const Math sum = sum_lanes<Math>(n, [&](int64_t i) { return vector_exp(Math(row[i]) - max); });
            out[r] = static_cast<T>(max + std::log(sum));
          },
          [&](int64_t start, int64_t columns, int64_t first) {
            Math max[kTile], sum[kTile];
            column_sums(x + start, shape, columns, max, sum, true);
            for (int64_t c = 0; c < columns; ++c) out[first + c] = static_cast<T>(max[c] + std::log(sum[c]));
          });
    }
  }
};

void softmax(const Tensor& output, const Tensor& input, const AlongDim& shape, bool log) {
  pick<SoftmaxLoop>(RealFloatTypes(), input.scalar_type(), "softmax")(output, input, shape, log);
}

void softmax_backward(const Tensor& grad_input, const Tensor& grad, const Tensor& output, const AlongDim& shape,
                      bool log) {
  pick<SoftmaxBackwardLoop>(RealFloatTypes(), output.scalar_type(), "softmax_backward")(grad_input, grad, output, shape,
                                                                                         log);
}

void logsumexp(const Tensor& output, const Tensor& input, const AlongDim& shape) {
  pick<LogSumExpLoop>(FloatTypes(), input.scalar_type(), "logsumexp")(output, input, shape);
}

}  // namespace

void register_softmax() {
  kernels::softmax.set(kCPU, softmax);
  kernels::softmax_backward.set(kCPU, softmax_backward);
  kernels::logsumexp.set(kCPU, logsumexp);
}

}  // namespace rush::cpu
