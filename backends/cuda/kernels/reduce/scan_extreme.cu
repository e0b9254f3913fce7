// Running extremes and log-sum-exps.
#include "backends/cuda/kernels/reduce/register_reductions.h"
#include "backends/cuda/kernels/reduce/scan_engine.h"
#include "backends/functors/scan.h"
#include "core/ops/reduce/scan.h"

namespace rush::cuda {

namespace {

template <class T>
struct LogCumSumExp : functors::LogCumSumExp<T> {
  __device__ T combine(const T& a, const T& b) const { return functors::log_add_exp(a, b); }
};

template <class T>
struct StoreLog {
  T* out;
  __device__ void operator()(int64_t at, const opmath_t<T>& acc) const { out[at] = static_cast<T>(acc); }
};

struct LogCumSumExpScan {
  template <class T>
  static void run(const Tensor& output, const Tensor& input, const AlongDim& shape) {
    scan("logcumsumexp", static_cast<const T*>(input.data_ptr()), LogCumSumExp<opmath_t<T>>(),
         StoreLog<T>{output.data_ptr<T>()}, shape);
  }
};

// The best element so far and its index, which is -1 if there is none.
template <class Math, class Replaces>
struct BestSoFar {
  using In = Math;
  struct Acc {
    Math value;
    int64_t index;
  };
  __device__ Acc identity() const { return {Math(), -1}; }
  __device__ Acc take(const Acc& acc, In x, int64_t i) const { return combine(acc, {x, i}); }
  __device__ Acc combine(const Acc& earlier, const Acc& later) const {
    if (later.index < 0) return earlier;
    if (earlier.index < 0) return later;
    return Replaces()(later.value, earlier.value) ? later : earlier;
  }
};

template <class T, class F>
struct StoreBest {
  T* value;
  int64_t* index;
  __device__ void operator()(int64_t at, const typename F::Acc& best) const {
    value[at] = static_cast<T>(best.value);
    index[at] = best.index;
  }
};

template <class Replaces>
struct ExtremeScan {
  template <class T>
  static void run(const Tensor& values, const Tensor& indices, const Tensor& input, const AlongDim& shape) {
    using F = BestSoFar<opmath_t<T>, Replaces>;
    scan("cummax", static_cast<const T*>(input.data_ptr()), F(),
         StoreBest<T, F>{values.data_ptr<T>(), indices.data_ptr<int64_t>()}, shape);
  }
};

void cumulative_extreme(const Tensor& values, const Tensor& indices, const Tensor& input, const AlongDim& shape,
                        bool largest) {
  const ScalarType dtype = input.scalar_type();
  (largest
       ? pick<ExtremeScan<functors::NotSmaller>>(RealAndBoolTypes(), dtype, "cummax")
       : pick<ExtremeScan<functors::NotLarger>>(RealAndBoolTypes(), dtype, "cummin"))(values, indices, input, shape);
}

}  // namespace

void register_scan_extreme() {
  set_by_dtype<kernels::logcumsumexp, LogCumSumExpScan, FloatTypes, 1>(kCUDA);
  kernels::cumulative_extreme.set(kCUDA, cumulative_extreme);
}

}  // namespace rush::cuda
