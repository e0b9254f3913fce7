#include "core/ops/reduce/histogram.h"

#include "backends/cuda/kernels/index/sorted_scatter.h"
#include "backends/cuda/kernels/launch.h"
#include "backends/cuda/kernels/reduce/register_reductions.h"
#include "backends/cuda/memory/scratch.h"
#include "backends/functors/histogram.h"

namespace rush::cuda {

namespace {

using Counter = unsigned long long;  // what atomicAdd takes

template <class T>
struct CountBin {
  const T* x;
  Counter* counts;
  functors::BinOf<T> bin_of;
  __device__ void operator()(int64_t i) const {
    const int64_t bin = bin_of(static_cast<opmath_t<T>>(x[i]));
    if (bin >= 0) atomicAdd(counts + bin, Counter{1});  // of whole numbers, so that their order does not count
  }
};

template <class T>
struct StoreCount {
  T* out;
  const Counter* counts;
  __device__ void operator()(int64_t b) const { out[b] = static_cast<T>(static_cast<opmath_t<T>>(counts[b])); }
};

struct HistcLoop {
  template <class T>
  static void run(const Tensor& output, const Tensor& input, double min, double max) {
    const int64_t bins = output.numel();
    const size_t bytes = static_cast<size_t>(bins) * sizeof(Counter);
    const Scratch counts(bytes);
    RUSH_CUDA_CHECK(cudaMemsetAsync(counts.data(), 0, bytes, current_stream()));
    for_each_index("histc", input.numel(),
                   CountBin<T>{input.data_ptr<T>(), counts.as<Counter>(), functors::BinOf<T>(min, max, bins)});
    for_each_index("histc", bins, StoreCount<T>{output.data_ptr<T>(), counts.as<Counter>()});
  }
};

template <class T>
struct CountNumber {
  const T* x;
  Counter* counts;
  __device__ void operator()(int64_t i) const { atomicAdd(counts + x[i], Counter{1}); }
};

template <class T>
struct NumberOffset {
  const T* x;
  int64_t* offsets;
  __device__ void operator()(int64_t i) const { offsets[i] = static_cast<int64_t>(x[i]); }
};

struct BincountLoop {
  template <class T>
  static void run(const Tensor& output, const Tensor& input, const Tensor& weights) {
    const int64_t n = input.numel();
    const T* x = input.data_ptr<T>();
    if (!weights.defined()) {
      return for_each_index("bincount", n, CountNumber<T>{x, reinterpret_cast<Counter*>(output.data_ptr<int64_t>())});
    }
    // Weights are added in the order of the elements.
    const Scratch offsets(static_cast<size_t>(n) * sizeof(int64_t));
    for_each_index("bincount", n, NumberOffset<T>{x, offsets.as<int64_t>()});
    const ScatterPlan plan{output.data_ptr(),  Positions(), Positions(), offsets.as<int64_t>(), n,
                           weights.data_ptr(), false};
    scatter_sorted("bincount", output.scalar_type(), plan, output.numel(), IndexWrite::Add);
  }
};

}  // namespace

void register_histogram() {
  set_by_dtype<kernels::histc, HistcLoop, RealFloatTypes, 1>(kCUDA);
  set_by_dtype<kernels::bincount, BincountLoop, IntegerTypes, 1>(kCUDA);
}

}  // namespace rush::cuda
