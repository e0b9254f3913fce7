// Scans along a dimension.
#include "core/ops/reduce/scan.h"

#include "backends/cpu/loops.h"
#include "backends/cpu/reduce/reduce_loops.h"
#include "backends/cpu/register.h"
#include "backends/functors/scan.h"

namespace rush::cpu {

namespace {

constexpr int64_t kTile = 64;  // columns that are scanned side by side

template <class T, class Out, class F>
void scan_to(const F& f, const Tensor& output, const Tensor& input, const AlongDim& shape) {
  using Acc = typename F::Acc;
  const T* x = input.const_data_ptr<T>();
  Out* out = output.data_ptr<Out>();
  for_tiles<kTile>(shape, kGrain, [&](int64_t start, int64_t columns, int64_t) {
    if (shape.inner == 1) {
      Acc acc = f.identity();
      for (int64_t i = start; i < start + shape.size; ++i) {
        acc = f.take(acc, static_cast<typename F::In>(x[i]));
        out[i] = static_cast<Out>(f.result(acc));
      }
      return;
    }
    Acc acc[kTile];
    std::fill_n(acc, columns, f.identity());
    for (int64_t i = 0; i < shape.size; ++i) {
      const T* from = x + start + i * shape.inner;
      Out* to = out + start + i * shape.inner;
#pragma GCC ivdep
      for (int64_t c = 0; c < columns; ++c) {
        acc[c] = f.take(acc[c], static_cast<typename F::In>(from[c]));
        to[c] = static_cast<Out>(f.result(acc[c]));
      }
    }
  });
}

// Running sums of float keep their carry in double, as PyTorch's do.
template <class T>
struct Carry {
  using type = std::conditional_t<std::is_same_v<T, float>, double,
                                  std::conditional_t<std::is_same_v<T, complex<float>>, complex<double>, opmath_t<T>>>;
};

template <template <class, class> class F>
struct AccumulateScan {
  template <class T>
  static void run(const Tensor& output, const Tensor& input, const AlongDim& shape) {
    if constexpr (std::is_integral_v<T>) {
      scan_to<T, int64_t>(F<T, int64_t>(), output, input, shape);
    } else {
      using Acc = typename Carry<T>::type;
      scan_to<T, T>(F<Acc, Acc>(), output, input, shape);
    }
  }
};

struct LogCumSumExpScan {
  template <class T>
  static void run(const Tensor& output, const Tensor& input, const AlongDim& shape) {
    scan_to<T, T>(functors::LogCumSumExp<opmath_t<T>>(), output, input, shape);
  }
};

template <class Replaces>
struct ExtremeScan {
  template <class T>
  static void line(const T* x, int64_t n, T* value, int64_t* index) {
    opmath_t<T> best = x[0];
    int64_t at = 0;
    for (int64_t i = 0; i < n; ++i) {
      const opmath_t<T> next = x[i];
      if (Replaces()(next, best)) {
        best = next;
        at = i;
      }
      value[i] = static_cast<T>(best);
      index[i] = at;
    }
  }

  template <class T>
  static void lines(const T* x, int64_t n, int64_t stride, int64_t columns, T* value, int64_t* index) {
    opmath_t<T> best[kTile];
    int64_t at[kTile] = {};
    for (int64_t c = 0; c < columns; ++c) best[c] = x[c];
    for (int64_t i = 0; i < n; ++i, x += stride, value += stride, index += stride) {
#pragma GCC ivdep
      for (int64_t c = 0; c < columns; ++c) {
        const opmath_t<T> next = x[c];
        const bool replaces = Replaces()(next, best[c]);
        best[c] = replaces ? next : best[c];
        at[c] = replaces ? i : at[c];
        value[c] = static_cast<T>(best[c]);
        index[c] = at[c];
      }
    }
  }

  template <class T>
  static void run(const Tensor& values, const Tensor& indices, const Tensor& input, const AlongDim& shape) {
    const T* x = input.const_data_ptr<T>();
    T* value = values.data_ptr<T>();
    int64_t* index = indices.data_ptr<int64_t>();
    if (shape.size == 0) return;
    for_tiles<kTile>(shape, kGrain, [&](int64_t start, int64_t columns, int64_t) {
      if (shape.inner == 1) {
        line(x + start, shape.size, value + start, index + start);
      } else {
        lines(x + start, shape.size, shape.inner, columns, value + start, index + start);
      }
    });
  }
};

void cumulative_extreme(const Tensor& values, const Tensor& indices, const Tensor& input, const AlongDim& shape,
                        bool largest) {
  using Largest = ExtremeScan<functors::NotSmaller>;
  using Smallest = ExtremeScan<functors::NotLarger>;
  const ScalarType dtype = input.scalar_type();
  (largest ? pick<Largest>(RealAndBoolTypes(), dtype, "cummax") : pick<Smallest>(RealAndBoolTypes(), dtype, "cummin"))(
      values, indices, input, shape);
}

}  // namespace

void register_scan() {
  set_by_dtype<kernels::cumsum, AccumulateScan<functors::Sum>, AllTypes, 1>(kCPU);
  set_by_dtype<kernels::cumprod, AccumulateScan<functors::Prod>, AllTypes, 1>(kCPU);
  set_by_dtype<kernels::logcumsumexp, LogCumSumExpScan, FloatTypes, 1>(kCPU);
  kernels::cumulative_extreme.set(kCPU, cumulative_extreme);
}

}  // namespace rush::cpu
