#include "backends/cuda/kernels/reduce/block_sort.h"

#include <cub/block/block_radix_sort.cuh>

#include "backends/cuda/kernels/index/sorted_scatter.h"
#include "backends/cuda/kernels/launch.h"
#include "backends/functors/sort_key.h"

namespace rush::cuda {

namespace {

// ---- few elements: a thread counts those that come before its own ----

inline constexpr int64_t kFewToRank = 128;

template <class T>
struct RankElement {
  using Key = functors::SortKey<T>;
  const T* x;
  Key flip;
  SortedPlaces out;

  __device__ Key key(int64_t i) const { return static_cast<Key>(functors::sort_key(x[i]) ^ flip); }
  __device__ void operator()(int64_t i) const {
    const int64_t inner = out.places.inner, row = i / inner, outer = row / out.places.size;
    const int size = static_cast<int>(out.places.size), own_index = static_cast<int>(row - outer * size);
    const int64_t column = i - row * inner, first = outer * size * inner + column;
    const Key own = key(i);
    int rank = 0, nans = 0;
    for (int k = 0; k < size; ++k) {
      const Key other = key(first + k * inner);
      rank += other < own || (other == own && k < own_index);
      nans += !std::is_integral_v<T> && other == static_cast<Key>(~Key(0));
    }
    out.put(outer * inner + column, rank, own_index, nans);
  }
};

struct RankLoop {
  template <class T>
  static void run(const char* op, const void* x, int64_t n, bool descending, const SortedPlaces& out) {
    using Key = functors::SortKey<T>;
    for_each_index(op, n,
                   RankElement<T>{static_cast<const T*>(x), descending ? static_cast<Key>(~Key(0)) : Key(0), out});
  }
};

// ---- a block sorts a line by CUB's radix sort ----

// Where a block's keys come from. Sorted are their lowest `bits` bits.
template <class Key>
struct LineKeys {
  const void* x;
  ScalarType dtype;
  bool offsets;  // the keys are offsets, and not sort_key of numbers
  bool with_nans;
  Key flip;
  int bits;

  __device__ Key largest() const { return static_cast<Key>(~Key(0)) >> (8 * static_cast<int>(sizeof(Key)) - bits); }

  template <int kItems, class... T>
  __device__ void load(TypeList<T...>, const LinePlaces& places, int64_t line, Key (&keys)[kItems]) const {
    (load_as<T>(places, line, keys), ...);
  }
  template <class T, int kItems>
  __device__ void load_as(const LinePlaces& places, int64_t line, Key (&keys)[kItems]) const {
    if constexpr (sizeof(T) <= sizeof(Key)) {
      if (dtype != scalar_type_of<T> || offsets) return;
      const T* from = static_cast<const T*>(x) + places.start(line);
      const int64_t size = places.count(line);
#pragma unroll
      for (int e = 0; e < kItems; ++e) {
        const int64_t k = static_cast<int64_t>(threadIdx.x) * kItems + e;
        if (k < size) keys[e] = static_cast<Key>(functors::sort_key(from[k * places.inner])) ^ flip;
      }
    }
  }
  template <int kItems>
  __device__ void load_offsets(int64_t n, Key (&keys)[kItems]) const {
    const auto* from = static_cast<const int64_t*>(x);
#pragma unroll
    for (int e = 0; e < kItems; ++e) {
      const int64_t k = static_cast<int64_t>(threadIdx.x) * kItems + e;
      if (k < n && from[k] != kNoOffset) keys[e] = static_cast<Key>(from[k]);
    }
  }
};

template <class Key, int kBlock, int kItems>
__global__ void __launch_bounds__(kBlock)
    sort_line_kernel(const __grid_constant__ LineKeys<Key> from, const __grid_constant__ SortedPlaces out) {
  using Sort = cub::BlockRadixSort<Key, kBlock, kItems, uint16_t>;
  __shared__ typename Sort::TempStorage storage;
  const int64_t line = blockIdx.x, size = out.places.count(line);
  Key keys[kItems];
  uint16_t numbers[kItems];
#pragma unroll
  for (int e = 0; e < kItems; ++e) {
    keys[e] = from.largest();  // of what is beyond the line, which stays behind an equal element
    numbers[e] = static_cast<uint16_t>(threadIdx.x * kItems + e);
  }
  if (from.offsets) {
    from.load_offsets(size, keys);
  } else {
    from.load(RealAndBoolTypes(), out.places, line, keys);
  }
  Sort(storage).SortBlockedToStriped(keys, numbers, 0, from.bits);
  int nans = 0;
  if (from.with_nans) {
#pragma unroll
    for (int e = 0; e < kItems; ++e) {
      nans += __syncthreads_count(e * kBlock + threadIdx.x < size && keys[e] == from.largest());
    }
  }
#pragma unroll
  for (int e = 0; e < kItems; ++e) {
    const int64_t rank = e * kBlock + static_cast<int64_t>(threadIdx.x);
    if (rank < size) out.put(line, rank, numbers[e], nans);
  }
}

template <class Key>
bool sort_as(const char* op, int64_t lines, const LineKeys<Key>& from, const SortedPlaces& out) {
  const auto launch = [&](auto kernel, unsigned threads) {
    launch_kernel(op, kernel, {static_cast<unsigned>(lines), threads}, from, out);
    return true;
  };
  const int64_t longest = out.places.longest();
  if (longest <= 1024) return launch(sort_line_kernel<Key, 256, 4>, 256);
  if (longest <= 4096) return launch(sort_line_kernel<Key, 512, 8>, 512);
  if constexpr (sizeof(Key) == 4) {  // keys of 8 bytes would not fit into shared memory
    if (longest <= kLongestInBlock) return launch(sort_line_kernel<Key, 1024, 8>, 1024);
  }
  return false;
}

}  // namespace

bool sort_in_blocks(const char* op, const Tensor& input, const AlongDim& shape, bool descending,
                    const SortedPlaces& out) {
  const int64_t lines = shape.outer * shape.inner * out.places.chunks;
  const ScalarType dtype = input.scalar_type();
  const void* x = input.data_ptr();
  if (shape.size <= kFewToRank) {
    pick<RankLoop>(RealAndBoolTypes(), dtype, op)(op, x, input.numel(), descending, out);
    return true;
  }
  const int bits = static_cast<int>(8 * input.element_size());
  const uint64_t flip = descending ? ~uint64_t{0} >> (64 - bits) : 0;
  const bool with_nans = out.ranks.median && is_floating_point(dtype);
  return bits > 32 ? sort_as<uint64_t>(op, lines, {x, dtype, false, with_nans, flip, bits}, out)
                   : sort_as<uint32_t>(op, lines, {x, dtype, false, with_nans, static_cast<uint32_t>(flip), bits}, out);
}

bool sort_offsets_in_block(const char* op, const int64_t* offsets, int64_t n, int bits, int64_t* order) {
  const SortedPlaces out{order, nullptr, nullptr, nullptr, 0, Ranks{0, n}, LinePlaces(AlongDim(1, n, 1))};
  if (n <= kFewToRank) {
    RankLoop::run<int64_t>(op, offsets, n, false, out);
    return true;
  }
  return bits <= 32 && sort_as<uint32_t>(op, 1, {offsets, kInt64, true, false, 0, bits}, out);
}

}  // namespace rush::cuda
