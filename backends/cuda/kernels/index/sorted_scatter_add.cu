#include <bit>

#include "backends/cuda/kernels/index/sorted_scatter.h"
#include "backends/cuda/kernels/launch.h"
#include "backends/cuda/kernels/reduce/block_combine.h"
#include "backends/cuda/kernels/reduce/block_sort.h"
#include "backends/cuda/kernels/reduce/sort_pairs.h"
#include "backends/cuda/memory/scratch.h"
#include "backends/functors/first_where.h"
#include "backends/functors/index.h"
#include "backends/functors/sort_key.h"

namespace rush::cuda {

namespace {

// Note [Chunks of sorted offsets]
// The sorted offsets are split into chunks. A thread loops over a chunk and combines the values of each group of equal
// offsets. It writes the result of a group that is within the chunk. If a group crosses chunks, every chunk writes its
// partial result to scratch memory: to `tails` in the chunk where the group starts, and to `heads` in the others. A
// second kernel combines these. Many threads therefore share a large group, always with the same chunks: their length
// depends on the sizes alone. Few values are split into shorter chunks, so that there are threads enough for a GPU;
// very few are one, which spares a launch.
int64_t chunk_length(int64_t n, int64_t columns) {
  constexpr int64_t kManyThreads = 131072, kVeryFew = 32, kLongest = 64;
  if (n <= kVeryFew) return kVeryFew;
  return n > kLongest * kManyThreads
             ? kLongest
             : std::clamp<int64_t>(n * std::min(columns, kManyThreads) / kManyThreads, 8, kLongest);
}

template <class T, class Write>
struct SortedScatter {
  using Math = opmath_t<T>;
  ScatterPlan plan;
  // Of the sorted values their numbers, or, of single elements, the offsets and the values themselves.
  const int64_t* order;
  const uint32_t* keys;
  const Math* sorted;
  uint32_t none;       // the key of kNoOffset
  int64_t length = 0;  // of a chunk
  Math *heads = nullptr, *tails = nullptr;

  __device__ int64_t offset(int64_t p) const {
    if (!keys) return plan.offsets[order[p]];
    return keys[p] == none ? kNoOffset : keys[p];
  }
  __device__ int64_t end(int64_t chunk) const { return std::min(plan.n, (chunk + 1) * length); }
  __device__ bool continues_before(int64_t begin) const { return begin > 0 && offset(begin - 1) == offset(begin); }
  __device__ bool continues_after(int64_t last) const { return last < plan.n && offset(last) == offset(last - 1); }
  __device__ Math value(int64_t o, int64_t p, int64_t i) const {
    if (sorted) return sorted[p];
    const T* values = static_cast<const T*>(plan.values);
    if (plan.weights) {
      const int64_t j = order[p], row = o * (plan.n >> plan.shift) + (j >> plan.shift);
      return static_cast<Math>(values[row * plan.inner.count + i]) * static_cast<const Math*>(plan.weights)[j];
    }
    return static_cast<Math>(plan.one_value ? *values : values[(o * plan.n + order[p]) * plan.inner.count + i]);
  }
  __device__ void store(int64_t o, int64_t at, int64_t i, Math total) const {
    if (at == kNoOffset) return;
    T& target = static_cast<T*>(plan.to)[plan.outer.offset(o) + at + plan.inner.offset(i)];
    target = static_cast<T>(Write()(static_cast<Math>(target), total));
  }
  // In how many chunks after this one the group goes on that starts in it; 0 if there is none.
  __device__ int64_t chunks_after(int64_t chunk) const {
    const int64_t begin = chunk * length, next = end(chunk);
    if (!continues_after(next)) return 0;
    const int64_t at = offset(next - 1), left = (plan.n - next + length - 1) / length;
    if (offset(begin) == at && continues_before(begin)) return 0;  // it starts before
    const auto ended = [&](int64_t k) { return offset(next + k * length) != at; };
    int64_t reach = 1;
    while (reach < left && !ended(reach)) reach *= 2;
    return functors::first_where(std::min(reach, left), ended);
  }
};

template <class T, class Write>
struct ScatterChunks : SortedScatter<T, Write> {
  __device__ void operator()(int64_t task) const {
    const int64_t columns = this->plan.columns(), chunk = task / columns, column = task % columns;
    const int64_t o = column / this->plan.inner.count, i = column % this->plan.inner.count;
    const int64_t begin = chunk * this->length, end = this->end(chunk);
    int64_t first = begin, at = this->offset(begin);
    auto total = this->value(o, begin, i);
    const auto finish = [&](int64_t last) {
      if (first == begin && this->continues_before(begin)) {
        this->heads[task] = total;
      } else if (last == end && this->continues_after(end)) {
        this->tails[task] = total;
      } else {
        this->store(o, at, i, total);
      }
    };
    constexpr int kAhead = 4;  // numbers on their way from memory
    for (int64_t p = begin + 1; p < end; p += kAhead) {
      opmath_t<T> values[kAhead];
      int64_t offsets[kAhead];
#pragma unroll
      for (int k = 0; k < kAhead; ++k) {
        const int64_t next = p + k < end ? p + k : end - 1;
        values[k] = this->value(o, next, i);
        offsets[k] = this->offset(next);
      }
#pragma unroll
      for (int k = 0; k < kAhead; ++k) {
        if (p + k >= end) break;
        if (offsets[k] == at) {
          total = Write()(total, values[k]);
          continue;
        }
        finish(p + k);
        first = p + k;
        at = offsets[k];
        total = values[k];
      }
    }
    finish(end);
  }
};

// A thread combines the chunks of a group, or, where they are many, its warp does.
template <class T, class Write>
__global__ void __launch_bounds__(kThreads)
    join_chunks_kernel(const __grid_constant__ SortedScatter<T, Write> scatter, int64_t tasks) {
  using Math = opmath_t<T>;
  constexpr int64_t kFewChunks = 256;
  const int64_t columns = scatter.plan.columns(), lane = threadIdx.x % 32;
  const int64_t task = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x, column = task % columns;
  const int64_t chunks = task < tasks ? scatter.chunks_after(task / columns) : 0;
  Math total = chunks > 0 ? scatter.tails[task] : Math();
  if (chunks <= kFewChunks) {
#pragma unroll 8
    for (int64_t c = 1; c <= chunks; ++c) total = Write()(total, scatter.heads[task + c * columns]);
  }
  for (unsigned left = __ballot_sync(~0u, chunks > kFewChunks); left != 0; left &= left - 1) {
    const int owner = __ffs(static_cast<int>(left)) - 1;
    const int64_t of_task = shuffle_from(task, owner), of_chunks = shuffle_from(chunks, owner);
    Math sum = scatter.heads[of_task + (1 + lane) * columns];
#pragma unroll 4
    for (int64_t c = 33 + lane; c <= of_chunks; c += 32) sum = Write()(sum, scatter.heads[of_task + c * columns]);
    for (int mask = 16; mask > 0; mask /= 2) sum = Write()(sum, shuffle_xor(sum, mask));
    if (lane == owner) total = Write()(total, sum);
  }
  if (chunks == 0) return;
  const int64_t at = scatter.offset(scatter.end(task / columns) - 1);
  scatter.store(column / scatter.plan.inner.count, at, column % scatter.plan.inner.count, total);
}

template <class T>
struct KeysAndValues {
  ScatterPlan plan;
  uint32_t* keys;
  opmath_t<T>* values;
  uint32_t none;
  __device__ void operator()(int64_t j) const {
    const int64_t offset = plan.offset(j);
    keys[j] = offset == kNoOffset ? none : static_cast<uint32_t>(offset);
    values[j] = static_cast<opmath_t<T>>(static_cast<const T*>(plan.values)[j]);
  }
};

struct WholeOffsets {
  int64_t* to;
  ScatterPlan plan;
  __device__ void operator()(int64_t j) const { to[j] = plan.offset(j); }
};

template <class Write>
struct SortedScatterLoop {
  template <class T>
  static void run(const char* op, const ScatterPlan& plan, int64_t bound, const int64_t* order) {
    using Math = opmath_t<T>;
    const int bits = std::bit_width(static_cast<uint64_t>(bound));
    const auto n = static_cast<size_t>(plan.n);
    SortedScatter<T, Write> scatter{plan, order, nullptr, nullptr, static_cast<uint32_t>((uint64_t{1} << bits) - 1)};
    constexpr bool kSortable = sizeof(Math) == 4 || sizeof(Math) == 8;
    if constexpr (kSortable) {
      // Many single elements are sorted themselves, so that nothing is looked up by its number.
      if (!order && plan.n > kLongestInBlock && plan.columns() == 1 && !plan.one_value && !plan.weights && bits <= 32) {
        using Value = std::conditional_t<sizeof(Math) == 4, uint32_t, int64_t>;
        const Scratch keys(2 * n * sizeof(uint32_t)), values(2 * n * sizeof(Math));
        auto* key = keys.as<uint32_t>();
        for_each_index(op, plan.n, KeysAndValues<T>{plan, key, values.as<Math>(), scatter.none});
        sort_pairs<uint32_t, Value>(key, key + n, values.as<Value>(), values.as<Value>() + n, plan.n, bits);
        scatter.keys = key + n;
        scatter.sorted = values.as<Math>() + n;
        return combine(op, scatter);
      }
    }
    const Scratch whole(plan.starts.dims > 0 ? n * sizeof(int64_t) : 0), memory(order ? 0 : n * sizeof(int64_t));
    if (whole.data()) {
      for_each_index(op, plan.n, WholeOffsets{whole.as<int64_t>(), plan});
      scatter.plan.offsets = whole.as<int64_t>();
    }
    if (!order) {
      sort_offsets(op, scatter.plan.offsets, plan.n, bound, memory.as<int64_t>());
      scatter.order = memory.as<int64_t>();
    }
    combine(op, scatter);
  }

  template <class T>
  static void combine(const char* op, SortedScatter<T, Write> scatter) {
    using Math = opmath_t<T>;
    const int64_t n = scatter.plan.n, columns = scatter.plan.columns(), length = chunk_length(n, columns);
    const int64_t chunks = (n + length - 1) / length, tasks = chunks * columns;
    const Scratch parts(chunks > 1 ? 2 * static_cast<size_t>(tasks) * sizeof(Math) : 0);
    scatter.length = length;
    scatter.heads = parts.as<Math>();
    scatter.tails = scatter.heads + tasks;
    for_each_index(op, tasks, ScatterChunks<T, Write>{scatter});
    if (chunks == 1) return;
    launch_kernel(op, join_chunks_kernel<T, Write>,
                  {static_cast<unsigned>((tasks + kThreads - 1) / kThreads), kThreads}, scatter, tasks);
  }
};

}  // namespace

void scatter_sorted(const char* op, ScalarType dtype, const ScatterPlan& plan, int64_t bound, IndexWrite write,
                    const int64_t* order) {
  (write == IndexWrite::Add
       ? pick<SortedScatterLoop<functors::WriteAdd>>(AllTypes(), dtype, op)
       : pick<SortedScatterLoop<functors::WriteMultiply>>(AllTypes(), dtype, op))(op, plan, bound, order);
}

}  // namespace rush::cuda
