#include "core/ops/reduce/histogram.h"

#include "backends/cuda/kernels/index/sorted_scatter.h"
#include "backends/cuda/kernels/launch.h"
#include "backends/cuda/kernels/reduce/register_reductions.h"
#include "backends/cuda/memory/scratch.h"
#include "backends/functors/histogram.h"

namespace rush::cuda {

namespace {

using Counter = unsigned long long;  // what atomicAdd takes

// counts[bin_at(i)] += 1 for all i in [0, n) whose bin is not negative. A block counts a few bins in shared memory, so
// that the threads of all blocks do not wait for each other there. Sums of whole numbers do not depend on their order.
template <class BinAt>
__global__ void __launch_bounds__(kThreads)
    count_kernel(const __grid_constant__ BinAt bin_at, int64_t n, Counter* counts, int shared_bins) {
  extern __shared__ unsigned own[];
  for (int b = threadIdx.x; b < shared_bins; b += kThreads) own[b] = 0;
  __syncthreads();
  const int64_t step = static_cast<int64_t>(gridDim.x) * kThreads;
#pragma unroll 4
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x; i < n; i += step) {
    const int64_t bin = bin_at(i);
    if (bin < 0) continue;
    if (shared_bins > 0) {
      atomicAdd(own + bin, 1u);
    } else {
      atomicAdd(counts + bin, Counter{1});
    }
  }
  __syncthreads();
  for (int b = threadIdx.x; b < shared_bins; b += kThreads) {
    if (own[b] > 0) atomicAdd(counts + b, Counter{own[b]});
  }
}

template <class BinAt>
void count_bins(const char* op, const BinAt& bin_at, int64_t n, Counter* counts, int64_t bins) {
  constexpr int64_t kSharedBins = 4096, kMostBlocks = 1024;
  if (n == 0) return;
  const int shared_bins = bins <= kSharedBins ? static_cast<int>(bins) : 0;
  // What a block adds to the result is less than what it counts.
  const int64_t of_block = std::max<int64_t>(8 * kThreads, 2 * shared_bins);
  const auto blocks = static_cast<unsigned>(std::min(kMostBlocks, (n + of_block - 1) / of_block));
  launch_kernel(op, count_kernel<BinAt>, {blocks, kThreads, static_cast<size_t>(shared_bins) * sizeof(unsigned)},
                bin_at, n, counts, shared_bins);
}

template <class T>
struct HistogramBin {
  const T* x;
  functors::BinOf<T> bin_of;
  __device__ int64_t operator()(int64_t i) const { return bin_of(static_cast<opmath_t<T>>(x[i])); }
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
    count_bins("histc", HistogramBin<T>{input.data_ptr<T>(), functors::BinOf<T>(min, max, bins)}, input.numel(),
               counts.as<Counter>(), bins);
    for_each_index("histc", bins, StoreCount<T>{output.data_ptr<T>(), counts.as<Counter>()});
  }
};

template <class T>
struct NumberBin {
  const T* x;
  __device__ int64_t operator()(int64_t i) const { return static_cast<int64_t>(x[i]); }
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
      return count_bins("bincount", NumberBin<T>{x}, n, reinterpret_cast<Counter*>(output.data_ptr<int64_t>()),
                        output.numel());
    }
    // Weights are added in the order of the elements.
    const Scratch offsets(static_cast<size_t>(n) * sizeof(int64_t));
    for_each_index("bincount", n, NumberOffset<T>{x, offsets.as<int64_t>()});
    const ScatterPlan plan{output.data_ptr(),  Positions(), Positions(), offsets.as<int64_t>(), n,
                           weights.data_ptr(), false};
    scatter_combined("bincount", output.scalar_type(), plan, output.numel(), IndexWrite::Add);
  }
};

}  // namespace

void register_histogram() {
  set_by_dtype<kernels::histc, HistcLoop, RealFloatTypes, 1>(kCUDA);
  set_by_dtype<kernels::bincount, BincountLoop, IntegerTypes, 1>(kCUDA);
}

}  // namespace rush::cuda
