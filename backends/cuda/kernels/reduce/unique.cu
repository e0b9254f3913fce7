// Distinct rows of a matrix.
#include "core/ops/reduce/unique.h"

#include <bit>

#include "backends/cuda/kernels/launch.h"
#include "backends/cuda/kernels/read_back.h"
#include "backends/cuda/kernels/reduce/line_order.h"
#include "backends/cuda/kernels/reduce/register_reductions.h"
#include "backends/cuda/kernels/reduce/sort_pairs.h"
#include "backends/functors/optional_data.h"
#include "backends/functors/sort_key.h"
#include "core/ops/reduce/scan.h"

namespace rush::cuda {

namespace {

// The rows' order is null if they stay as they are.
__device__ inline int64_t row_at(const int64_t* order, int64_t i) { return order ? order[i] : i; }

template <class T>
using ColumnKey = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;

template <class T>
struct ColumnKeys {
  ColumnKey<T>* keys;
  const T* x;
  int64_t* order;
  int64_t width, column;
  __device__ void operator()(int64_t i) const {
    const bool first = column == width - 1;
    if (first) order[i] = i;
    keys[i] = functors::sort_key(x[(first ? i : order[i]) * width + column]);
  }
};

// Whether row a comes before row b; `tie` says it of equal ones.
template <class T>
__device__ bool comes_before(const T* a, const T* b, int64_t width, bool tie) {
  for (int64_t c = 0; c < width; ++c) {
    const auto key = functors::sort_key(a[c]), other = functors::sort_key(b[c]);
    if (key != other) return key < other;
  }
  return tie;
}

// A block for each row counts those before it. Of few rows that is less work than a sort by every column.
template <class T>
__global__ void __launch_bounds__(kThreads) rank_rows(const T* x, int64_t n, int64_t width, int64_t* order) {
  __shared__ int rank;
  if (threadIdx.x == 0) rank = 0;
  __syncthreads();
  const int64_t own = blockIdx.x;
  int before = 0;
  for (int64_t i = threadIdx.x; i < n; i += kThreads) {
    before += comes_before(x + i * width, x + own * width, width, i < own);
  }
  atomicAdd(&rank, before);
  __syncthreads();
  if (threadIdx.x == 0) order[rank] = own;
}

// Lexicographic order, of equal rows the first in position: by comparison of few, and else stably by the last column,
// then by the one before, and so on.
template <class T>
void sort_rows(const T* x, int64_t n, int64_t width, int64_t* order) {
  constexpr int64_t kMostCompared = int64_t{1} << 26;  // elements
  if (n == 0) return;
  if (n <= 1 << 13 && width <= kMostCompared / (n * n)) {
    return launch_kernel("unique", rank_rows<T>, {static_cast<unsigned>(n), kThreads}, x, n, width, order);
  }
  const auto count = static_cast<size_t>(n);
  const Scratch keys(2 * count * sizeof(ColumnKey<T>)), other(count * sizeof(int64_t));
  auto* key = keys.as<ColumnKey<T>>();
  int64_t *from = order, *to = other.as<int64_t>();
  for (int64_t c = width; c-- > 0;) {
    for_each_index("unique", n, ColumnKeys<T>{key, x, from, width, c});
    sort_pairs<ColumnKey<T>>(key, key + n, from, to, n, 8 * sizeof(T));
    std::swap(from, to);
  }
  if (from == order) return;
  RUSH_CUDA_CHECK(cudaMemcpyAsync(order, from, count * sizeof(int64_t), cudaMemcpyDeviceToDevice, current_stream()));
}

template <class T>
struct FlagFirst {
  bool* flags;
  const T* x;
  const int64_t* order;
  int64_t width;
  __device__ void operator()(int64_t i) const {
    bool first = i == 0;
    const T *own = x + row_at(order, i) * width, *before = first ? own : x + row_at(order, i - 1) * width;
    for (int64_t c = 0; c < width && !first; ++c) {
      first = !(static_cast<opmath_t<T>>(before[c]) == static_cast<opmath_t<T>>(own[c]));
    }
    flags[i] = first;
  }
};

template <class T>
struct WriteDistinct {
  T* rows;
  int64_t *inverse, *starts;  // inverse may be null
  const T* x;
  const bool* flags;
  const int64_t *numbers, *order;  // numbers count from one
  int64_t width;
  __device__ void operator()(int64_t i) const {
    const int64_t number = numbers[i] - 1;
    const int64_t row = row_at(order, i);
    if (inverse) inverse[row] = number;
    if (!flags[i]) return;
    starts[number] = i;
    for (int64_t c = 0; c < width; ++c) rows[number * width + c] = x[row * width + c];
  }
};

struct CountEach {
  int64_t* counts;
  const int64_t* starts;
  int64_t distinct, n;
  __device__ void operator()(int64_t d) const { counts[d] = (d + 1 < distinct ? starts[d + 1] : n) - starts[d]; }
};

struct UniqueLoop {
  template <class T>
  static void run(Tensor& rows, Tensor& inverse, Tensor& counts, const Tensor& input, bool sort, bool needs_inverse) {
    const int64_t n = input.size(0), width = input.size(1);
    const Device device = input.device();
    const T* x = input.data_ptr<T>();
    const Scratch memory(2 * static_cast<size_t>(n) * sizeof(int64_t));
    int64_t *starts = memory.as<int64_t>(), *order = sort ? starts + n : nullptr;
    if (sort) sort_rows(x, n, width, order);
    const Tensor flags = rush::detail::empty_contiguous(n, kBool, device);
    for_each_index("unique", n, FlagFirst<T>{flags.data_ptr<bool>(), x, order, width});
    const Tensor numbers = rush::detail::empty_contiguous(n, kInt64, device);
    kernels::cumsum(kCUDA, numbers, flags, AlongDim(1, n, 1));
    const int64_t distinct = n == 0 ? 0 : read_back(numbers.data_ptr<int64_t>() + n - 1);
    if (needs_inverse) inverse = rush::detail::empty_contiguous(n, kInt64, device);
    rows = rush::detail::empty_contiguous({distinct, width}, input.scalar_type(), device);
    counts = rush::detail::empty_contiguous(distinct, kInt64, device);
    for_each_index("unique", n,
                   WriteDistinct<T>{rows.data_ptr<T>(), data_or_null<int64_t>(inverse), starts, x,
                                    flags.data_ptr<bool>(), numbers.data_ptr<int64_t>(), order, width});
    for_each_index("unique", distinct, CountEach{counts.data_ptr<int64_t>(), starts, distinct, n});
  }
};

}  // namespace

void register_unique() { set_by_dtype<kernels::unique, UniqueLoop, RealAndBoolTypes, 3>(kCUDA); }

}  // namespace rush::cuda
