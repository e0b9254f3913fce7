// Random orders and samples: what sorts random numbers.
#include <cub/device/device_radix_sort.cuh>

#include "backends/cuda/kernels/pointwise/register_pointwise.h"
#include "backends/cuda/kernels/random/random_words.h"
#include "backends/cuda/kernels/reduce/found_any.h"
#include "backends/cuda/kernels/reduce/line_order.h"
#include "backends/functors/first_where.h"
#include "backends/functors/random.h"
#include "core/ops/random/random.h"
#include "core/ops/random/random_factories.h"
#include "core/ops/reduce/extrema.h"

namespace rush::cuda {

namespace {

// `numbers` in the order of `keys`, those of equal keys as they were, into `sorted`.
void sort_by_key(const uint64_t* keys, const int64_t* numbers, int64_t* sorted, int64_t n) {
  const cudaStream_t stream = current_stream();
  const Scratch sorted_keys(static_cast<size_t>(n) * sizeof(uint64_t));
  const auto sort = [&](void* temporary, size_t& nbytes) {
    RUSH_CUDA_CHECK(cub::DeviceRadixSort::SortPairs(temporary, nbytes, keys, sorted_keys.as<uint64_t>(), numbers,
                                                    sorted, n, 0, 64, stream));
  };
  size_t nbytes = 0;
  sort(nullptr, nbytes);
  const Scratch temporary(nbytes);
  sort(temporary.data(), nbytes);
}

struct KeyNumbers {
  uint64_t* keys;
  int64_t* numbers;
  PhiloxState reserved;
  int64_t n;
  __device__ void operator()(int64_t group) const {
    const PhiloxBlock block = philox_block(reserved, static_cast<uint64_t>(group));
#pragma unroll
    for (int e = 0; e < 2; ++e) {
      const int64_t i = 2 * group + e;
      if (i >= n) return;
      keys[i] = join_words(block[2 * e], block[2 * e + 1]);
      numbers[i] = i;
    }
  }
};

void randperm(const Tensor& out, const PhiloxState& reserved) {
  const int64_t n = out.numel();
  if (n == 0) return;
  const Scratch keys(static_cast<size_t>(n) * sizeof(uint64_t)), numbers(static_cast<size_t>(n) * sizeof(int64_t));
  for_each_index("randperm", (n + 1) / 2, KeyNumbers{keys.as<uint64_t>(), numbers.as<int64_t>(), reserved, n});
  sort_by_key(keys.as<uint64_t>(), numbers.as<int64_t>(), out.data_ptr<int64_t>(), n);
}

template <class T>
struct NoWeight {
  const T* weights;
  __device__ bool operator()(int64_t i) const { return !(weights[i] >= 0) || isinf(weights[i]); }
};

// Whether a row has fewer than `needed` weights above zero.
template <class T>
struct TooFewWeights {
  const T* weights;
  int64_t n, needed;
  __device__ bool operator()(int64_t row) const {
    int64_t above_zero = 0;
    for (int64_t i = 0; i < n && above_zero < needed; ++i) above_zero += weights[row * n + i] > 0;
    return above_zero < needed;
  }
};

// The cumulative sum of a row's weights, in chunks of kThreads from left to right; a thread block for each row.
template <class T>
__global__ void __launch_bounds__(kThreads) running_sums(const T* weights, double* sums, int64_t n) {
  __shared__ double partial[kThreads];
  const T* row = weights + blockIdx.x * n;
  double* to = sums + blockIdx.x * n;
  double before = 0;
  for (int64_t begin = 0; begin < n; begin += kThreads) {
    const int64_t i = begin + threadIdx.x;
    partial[threadIdx.x] = i < n ? static_cast<double>(row[i]) : 0.0;
    __syncthreads();
    // Hillis and Steele's scan.
    for (int distance = 1; distance < kThreads; distance *= 2) {
      const double other = static_cast<int>(threadIdx.x) >= distance ? partial[threadIdx.x - distance] : 0.0;
      __syncthreads();
      partial[threadIdx.x] += other;
      __syncthreads();
    }
    if (i < n) to[i] = before + partial[threadIdx.x];
    before += partial[kThreads - 1];
    __syncthreads();
  }
}

// Sample j of a row looks its word up in the running sum of the weights: the first sum above it. Its weight is above
// zero, since the sum before it is not above.
struct LookUp {
  const double* sums;
  int64_t n, samples;
  PhiloxState reserved;
  int64_t* out;
  __device__ void operator()(int64_t i) const {
    const double* row = sums + i / samples * n;
    const double u = philox_word(reserved, static_cast<uint64_t>(i)) * 0x1p-32 * row[n - 1];
    // Rounding may make a later sum smaller than an earlier one, so the largest need not be the last.
    int64_t word = std::min(functors::first_where(n, [&](int64_t k) { return row[k] > u; }), n - 1);
    while (word > 0 && row[word] == row[word - 1]) --word;
    out[i] = word;
  }
};

// The exponential race's scores, see backends/cpu/random/random.cpp.
template <class T>
struct RaceScores {
  const T* weights;
  PhiloxState reserved;
  float* scores;
  __device__ void operator()(int64_t i) const {
    const functors::Exponential<float> exponential{1};
    const uint32_t word = philox_word(reserved, static_cast<uint64_t>(i));
    scores[i] = static_cast<float>(static_cast<double>(weights[i]) / exponential(functors::positive_uniform(word)));
  }
};

struct MultinomialLoop {
  template <class T>
  static void run(const Tensor& out, const Tensor& weights, bool replacement, const PhiloxState& reserved) {
    const int64_t rows = weights.size(0), n = weights.size(1), samples = out.size(1);
    const T* weight = weights.data_ptr<T>();
    const int64_t needed = replacement ? 1 : samples;
    report_if_any("multinomial", "probability tensor contains either `inf`, `nan` or element < 0", rows * n,
                  NoWeight<T>{weight});
    report_if_any("multinomial", "invalid multinomial distribution: a row has too few weights above zero", rows,
                  TooFewWeights<T>{weight, n, needed});
    if (out.numel() == 0) return;
    if (replacement) {
      const Scratch sums(static_cast<size_t>(rows * n) * sizeof(double));
      launch_kernel("multinomial", running_sums<T>, {static_cast<unsigned>(rows), kThreads}, weight, sums.as<double>(),
                    n);
      for_each_index("multinomial", out.numel(),
                     LookUp{sums.as<double>(), n, samples, reserved, out.data_ptr<int64_t>()});
      return;
    }
    const Tensor scores = rush::detail::empty_contiguous(weights.sizes(), kFloat32, out.device());
    for_each_index("multinomial", rows * n, RaceScores<T>{weight, reserved, scores.data_ptr<float>()});
    const AlongDim shape(rows, n, 1);
    if (samples == 1) return kernels::extreme(kCUDA, Tensor(), out, scores, shape, true);
    const Tensor best = rush::detail::empty_contiguous(out.sizes(), kFloat32, out.device());
    take_sorted("multinomial", best, out, scores, shape, true, {0, samples});
  }
};

}  // namespace

void register_random_order() {
  kernels::randperm.set(kCUDA, randperm);
  set_by_dtype<kernels::multinomial, MultinomialLoop, TypeList<float, double>, 1>(kCUDA);
}

}  // namespace rush::cuda
