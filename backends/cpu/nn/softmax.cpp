// softmax, log_softmax and logsumexp: row by row in the last dimension, and by tiles of columns in other dimensions and
// of short rows. 16-bit inputs are computed in float; the exponentials of long rows are computed twice rather than
// rounded in between.
#include "core/ops/nn/softmax.h"

#include <cmath>

#include "backends/cpu/loops.h"
#include "backends/cpu/pointwise/vec_math.h"
#include "backends/cpu/reduce/reduce_loops.h"
#include "backends/cpu/register.h"
#include "backends/functors/reduce.h"
#include "backends/functors/unary.h"

namespace rush::cpu {

namespace {

constexpr int64_t kTile = 256;       // columns
constexpr int64_t kExpGrain = 4096;  // elements; an exponential is expensive
using reduce::kLanes;

constexpr int64_t kShortRow = 16;    // elements
constexpr int64_t kWholeRow = 2048;  // elements of a 16-bit row whose exponentials are kept

// A tile of columns: element i of column c at from[i * from_stride + c], its result at to[i * to_stride + c].
template <class T>
struct Columns {
  const T* from;
  T* to;
  int64_t from_stride, to_stride, count;
};

// Several short rows that follow each other, as the columns of a tile.
template <class T, class Tile>
void rows_as_columns(const T* x, T* out, int64_t n, int64_t rows, const Tile& tile) {
  T from[kShortRow * kTile], to[kShortRow * kTile];
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t r = 0; r < rows; ++r) from[i * kTile + r] = x[r * n + i];
  }
  tile(Columns<T>{from, to, kTile, kTile, rows});
  for (int64_t r = 0; out && r < rows; ++r) {
    for (int64_t i = 0; i < n; ++i) out[r * n + i] = to[i * kTile + r];
  }
}

// Calls row(r) for every row, or tile(columns, first column's number) for every tile of columns. Rows too short for
// vectors are columns of a tile, too. `out` may be null.
template <class T, class Row, class Tile>
void for_lines(const T* x, T* out, const AlongDim& shape, const Row& row, const Tile& tile) {
  const int64_t n = shape.size;
  if (shape.inner != 1) {
    return for_tiles<kTile>(shape, kExpGrain, [&](int64_t start, int64_t columns, int64_t first) {
      tile(Columns<T>{x + start, out ? out + start : nullptr, shape.inner, shape.inner, columns}, first);
    });
  }
  if (n == 0 || n > kShortRow || n > shape.outer) {
    const int64_t grain = std::max<int64_t>(1, kExpGrain / std::max<int64_t>(n, 1));
    return parallel_for(0, shape.outer, grain, [&](int64_t begin, int64_t end) {
      for (; begin < end; ++begin) row(begin);
    });
  }
  for_tiles<kTile>({1, 1, shape.outer}, kExpGrain / n, [&](int64_t, int64_t rows, int64_t first) {
    rows_as_columns(x + first * n, out ? out + first * n : nullptr, n, rows,
                    [&](const Columns<T>& columns) { tile(columns, first); });
  });
}

template <class T>
opmath_t<T> row_max(const T* x, int64_t n) {
  using F = functors::Max<opmath_t<T>>;
  const F f;
  opmath_t<T> max;
  reduce::block<F, T>(&f, reinterpret_cast<const char*>(x), {1, n}, &max);
  return max;
}

// x[i] = F()(x[i]).
template <class F, class T>
void map_in_place(T* x, int64_t n) {
  const T* const in[] = {x};
  vec_loop(F(), x, in, n, std::index_sequence<0>());
}
template <class T>
void exp_in_place(T* x, int64_t n) {
  map_in_place<functors::Exp>(x, n);
}
template <class T>
void log_in_place(T* x, int64_t n) {
  map_in_place<functors::Log>(x, n);
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
  Math total(0);
  if (i > 0) {
    for (int k = 0; k < kLanes; ++k) total += lanes[k];
  }
  for (; i < n; ++i) total += f(i);
  return total;
}

// e[i] = exp(x[i] - max), which may lie where x does. Returns their sum. The end runs in a padded register.
template <class T>
T exp_and_sum(const T* x, T max, int64_t n, T* e) {
  using Lanes = VecOf<T>;
  Lanes sums(T(0));
  int64_t i = 0;
  for (; n - i >= Lanes::kSize; i += Lanes::kSize) {
    const Lanes exponential = exp(Lanes::load(x + i) - Lanes(max));
    exponential.store(e + i);
    sums = sums + exponential;
  }
  T padded[Lanes::kSize] = {}, total = 0;
  for (int k = 0; k < Lanes::kSize; ++k) total += sums.lanes()[k];
  if (i == n) return total;
  std::copy(x + i, x + n, padded);
  exp(Lanes::load(padded) - Lanes(max)).store(padded);
  std::copy_n(padded, n - i, e + i);
  for (int64_t k = 0; k < n - i; ++k) total += padded[k];
  return total;
}

// Calls use(from, exp(x - max), count) for each chunk of the row, and returns the sum of all exponentials.
template <class T, class Use>
RUSH_ALWAYS_INLINE opmath_t<T> exp_row(const T* x, opmath_t<T> max, int64_t n, const Use& use) {
  using Math = opmath_t<T>;
  Math e[kTile], sum(0);
  for (int64_t from = 0; from < n; from += kTile) {
    const int64_t count = std::min(kTile, n - from);
    if constexpr (std::is_same_v<T, Math>) {
      sum += exp_and_sum(x + from, max, count, e);
    } else {
      for (int64_t i = 0; i < count; ++i) e[i] = static_cast<Math>(x[from + i]);
      sum += exp_and_sum(e, max, count, e);
    }
    use(from, e, count);
  }
  return sum;
}

// max + log sum e^(x - max)
template <class T>
opmath_t<T> log_sum_of_exp(const T* x, opmath_t<T> max, int64_t n) {
  opmath_t<T> sum = exp_row(x, max, n, [](int64_t, const auto*, int64_t) {});
  log_in_place(&sum, 1);
  return max + sum;
}

template <class T>
void softmax_row(T* out, const T* x, int64_t n, bool log) {
  using Math = opmath_t<T>;
  const Math max = row_max(x, n);
  if (log) {
    const Math shift = log_sum_of_exp(x, max, n);
    for (int64_t i = 0; i < n; ++i) out[i] = static_cast<T>(static_cast<Math>(x[i]) - shift);
  } else if constexpr (std::is_same_v<T, Math>) {
    Math sum(0);
    for (int64_t from = 0; from < n; from += kTile) {
      sum += exp_and_sum(x + from, max, std::min(kTile, n - from), out + from);
    }
    const Math scale = 1 / sum;
    for (int64_t i = 0; i < n; ++i) out[i] *= scale;
  } else {
    Math whole[kWholeRow];
    const bool fits = n <= kWholeRow;
    const Math sum = exp_row(x, max, n, [&](int64_t from, const Math* e, int64_t count) {
      if (fits) std::copy_n(e, count, whole + from);
    });
    const Math scale = 1 / sum;
    const auto write = [&](int64_t from, const Math* e, int64_t count) {
      for (int64_t i = 0; i < count; ++i) out[from + i] = static_cast<T>(e[i] * scale);
    };
    if (fits) {
      write(0, whole, n);
    } else {
      exp_row(x, max, n, write);
    }
  }
}

// e[c] = exp(row[c] - max[c]).
template <class T>
RUSH_ALWAYS_INLINE void exp_columns(const T* row, const opmath_t<T>* max, int64_t columns, opmath_t<T>* e) {
  for (int64_t c = 0; c < columns; ++c) e[c] = static_cast<opmath_t<T>>(row[c]) - max[c];
  exp_in_place(e, columns);
}

// The largest element of each column, and the sum of exp(x - largest). A largest one that is infinite is taken for 0
// where `finite` is asked for, so that the sum is the infinity or the zero that it stands for.
template <class T>
void column_sums(const Columns<T>& x, int64_t n, opmath_t<T>* max, opmath_t<T>* sum, bool finite) {
  using Math = opmath_t<T>;
  std::fill_n(max, x.count, functors::lowest_of<Math>());
  std::fill_n(sum, x.count, Math(0));
  for (int64_t i = 0; i < n; ++i) {
    const T* row = x.from + i * x.from_stride;
#pragma GCC ivdep
    for (int64_t c = 0; c < x.count; ++c) max[c] = functors::TakeMax()(max[c], static_cast<Math>(row[c]));
  }
  for (int64_t c = 0; finite && c < x.count; ++c) {
    if (std::isinf(max[c])) max[c] = 0;
  }
  Math e[kTile];
  for (int64_t i = 0; i < n; ++i) {
    exp_columns(x.from + i * x.from_stride, max, x.count, e);
    for (int64_t c = 0; c < x.count; ++c) sum[c] += e[c];
  }
}

template <class T>
void softmax_columns(const Columns<T>& x, int64_t n, bool log) {
  using Math = opmath_t<T>;
  Math max[kTile], sum[kTile], e[kTile];
  column_sums(x, n, max, sum, false);
  if (log) log_in_place(sum, x.count);
  for (int64_t c = 0; c < x.count; ++c) sum[c] = log ? max[c] + sum[c] : 1 / sum[c];
  for (int64_t i = 0; i < n; ++i) {
    const T* from = x.from + i * x.from_stride;
    T* to = x.to + i * x.to_stride;
    if (log) {
      for (int64_t c = 0; c < x.count; ++c) to[c] = static_cast<T>(static_cast<Math>(from[c]) - sum[c]);
    } else {
      exp_columns(from, max, x.count, e);
      for (int64_t c = 0; c < x.count; ++c) to[c] = static_cast<T>(e[c] * sum[c]);
    }
  }
}

struct SoftmaxLoop {
  template <class T>
  static void run(const Tensor& output, const Tensor& input, const AlongDim& shape, bool log) {
    const T* x = input.const_data_ptr<T>();
    T* out = output.data_ptr<T>();
    const int64_t n = shape.size;
    for_lines(
        x, out, shape, [&](int64_t r) { softmax_row(out + r * n, x + r * n, n, log); },
        [&](const Columns<T>& columns, int64_t) { softmax_columns(columns, n, log); });
  }
};

// to = (g - sum) o, or g - e^o sum for log_softmax; `sum` is one number or one for each column.
template <bool log, class T, class Sum>
RUSH_ALWAYS_INLINE void backward_stretch(T* to, const T* g, const T* o, int64_t n, const Sum& sum) {
  using Math = opmath_t<T>;
  if constexpr (log) {
    Math e[kTile];
    for (int64_t from = 0; from < n; from += kTile) {
      const int64_t count = std::min(kTile, n - from);
      for (int64_t i = 0; i < count; ++i) e[i] = static_cast<Math>(o[from + i]);
      exp_in_place(e, count);
      for (int64_t i = 0; i < count; ++i) {
        to[from + i] = static_cast<T>(static_cast<Math>(g[from + i]) - e[i] * sum(from + i));
      }
    }
  } else {
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) {
      to[i] = static_cast<T>((static_cast<Math>(g[i]) - sum(i)) * static_cast<Math>(o[i]));
    }
  }
}

template <bool log, class T>
RUSH_ALWAYS_INLINE opmath_t<T> backward_term(T g, T o) {
  using Math = opmath_t<T>;
  return log ? static_cast<Math>(g) : static_cast<Math>(g) * static_cast<Math>(o);
}

template <bool log>
struct SoftmaxBackwardLoop {
  template <class T>
  static void run(const Tensor& grad_input, const Tensor& grad, const Tensor& output, const AlongDim& shape) {
    using Math = opmath_t<T>;
    const T *grads = grad.const_data_ptr<T>(), *outputs = output.const_data_ptr<T>();
    T* results = grad_input.data_ptr<T>();
    const int64_t n = shape.size, inner = shape.inner;
    if (inner == 1) {
      const int64_t grain = std::max<int64_t>(1, kExpGrain / std::max<int64_t>(n, 1));
      return parallel_for(0, shape.outer, grain, [&](int64_t begin, int64_t end) {
        for (int64_t r = begin; r < end; ++r) {
          const T *g = grads + r * n, *o = outputs + r * n;
          const Math sum = sum_lanes<Math>(n, [&](int64_t i) { return backward_term<log>(g[i], o[i]); });
          backward_stretch<log>(results + r * n, g, o, n, [=](int64_t) { return sum; });
        }
      });
    }
    for_tiles<kTile>(shape, kExpGrain, [&](int64_t start, int64_t columns, int64_t) {
      Math sum[kTile] = {};
      for (int64_t i = start; i < start + n * inner; i += inner) {
        for (int64_t c = 0; c < columns; ++c) sum[c] += backward_term<log>(grads[i + c], outputs[i + c]);
      }
      for (int64_t i = start; i < start + n * inner; i += inner) {
        backward_stretch<log>(results + i, grads + i, outputs + i, columns, [&](int64_t c) { return sum[c]; });
      }
    });
  }
};

// One line of complex numbers, minus the largest real part.
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
    const auto tile = [&](const Columns<T>& columns, int64_t first) {
      if constexpr (is_complex_v<T>) {
        for (int64_t c = 0; c < columns.count; ++c) {
          out[first + c] = complex_logsumexp(columns.from + c, n, columns.from_stride);
        }
      } else {
        Math max[kTile], sum[kTile];
        column_sums(columns, n, max, sum, true);
        log_in_place(sum, columns.count);
        for (int64_t c = 0; c < columns.count; ++c) out[first + c] = static_cast<T>(max[c] + sum[c]);
      }
    };
    const auto row = [&](int64_t r) {
      if constexpr (is_complex_v<T>) {
        out[r] = complex_logsumexp(x + r * n, n, 1);
      } else {
        Math max = row_max(x + r * n, n);
        if (std::isinf(max)) max = 0;
        out[r] = static_cast<T>(log_sum_of_exp(x + r * n, max, n));
      }
    };
    for_lines(x, static_cast<T*>(nullptr), shape, row, tile);
  }
};

void softmax_backward(const Tensor& grad_input, const Tensor& grad, const Tensor& output, const AlongDim& shape,
                      bool log) {
  const ScalarType dtype = output.scalar_type();
  (log ? pick<SoftmaxBackwardLoop<true>>(RealFloatTypes(), dtype, "log_softmax_backward")
       : pick<SoftmaxBackwardLoop<false>>(RealFloatTypes(), dtype, "softmax_backward"))(grad_input, grad, output,
                                                                                        shape);
}

}  // namespace

void register_softmax() {
  set_by_dtype<kernels::softmax, SoftmaxLoop, RealFloatTypes, 1>(kCPU);
  kernels::softmax_backward.set(kCPU, softmax_backward);
  set_by_dtype<kernels::logsumexp, LogSumExpLoop, FloatTypes, 1>(kCPU);
}

}  // namespace rush::cpu
