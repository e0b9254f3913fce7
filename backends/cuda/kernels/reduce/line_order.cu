#include "backends/cuda/kernels/reduce/line_order.h"

#include <bit>

#include "backends/cuda/kernels/launch.h"
#include "backends/cuda/kernels/reduce/block_sort.h"
#include "backends/cuda/kernels/reduce/sort_pairs.h"
#include "backends/functors/first_where.h"
#include "backends/functors/reduce.h"
#include "backends/functors/sort_key.h"

namespace rush::cuda {

namespace {

// CUB sorts 32- and 64-bit keys; shorter ones are widened and compared by their own bits.
template <class T>
using WideKey = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;

template <class T>
struct ElementKeys {
  const T* x;
  WideKey<T>* keys;
  int64_t* numbers;
  LinePlaces places;
  functors::SortKey<T> flip;
  __device__ void operator()(int64_t i) const {
    const auto key = static_cast<functors::SortKey<T>>(functors::sort_key(x[places.of(i)]) ^ flip);
    keys[i] = key;
    numbers[i] = i;
  }
};

struct LineNumbers {
  const int64_t* numbers;
  uint64_t* keys;
  int64_t size;
  __device__ void operator()(int64_t i) const { keys[i] = static_cast<uint64_t>(numbers[i] / size); }
};

// All elements are sorted by value, then, stably, by line.
struct SortLines {
  template <class T>
  static void run(const char* op, const Tensor& input, const AlongDim& shape, bool descending, int64_t* order) {
    using Key = WideKey<T>;
    const int64_t n = input.numel(), lines = shape.outer * shape.inner;
    const auto count = static_cast<size_t>(n);
    const Scratch numbers(2 * count * sizeof(int64_t)), keys(2 * count * sizeof(uint64_t));
    int64_t *first = numbers.as<int64_t>(), *by_value = lines == 1 ? order : first + n;
    const auto flip = static_cast<functors::SortKey<T>>(descending ? ~functors::SortKey<T>(0) : 0);
    Key* element_keys = keys.as<Key>();
    for_each_index(op, n, ElementKeys<T>{input.data_ptr<T>(), element_keys, first, LinePlaces(shape), flip});
    sort_pairs<Key>(element_keys, element_keys + n, first, by_value, n, 8 * sizeof(T));
    if (lines == 1) return;
    auto* line_keys = keys.as<uint64_t>();
    for_each_index(op, n, LineNumbers{by_value, line_keys, shape.size});
    sort_pairs<uint64_t>(line_keys, line_keys + n, by_value, order, n,
                         std::bit_width(static_cast<uint64_t>(lines - 1)));
  }
};

// The elements at the ranks, i of each line.
template <class T>
struct TakeRanked {
  SortedPlaces out;
  const int64_t* order;
  __device__ void operator()(int64_t i) const {
    const int64_t size = out.places.size, line = i / out.ranks.count, *numbers = order + line * size;
    int64_t nans = 0;
    if (!std::is_integral_v<T> && out.ranks.median) {
      const T* x = reinterpret_cast<const T*>(out.x);
      nans = size - functors::first_where(size, [&](int64_t k) {
               return functors::is_nan(static_cast<opmath_t<T>>(x[out.places.of(numbers[k])]));
             });
    }
    const int64_t rank = out.ranks.begin(size, nans) + i % out.ranks.count;
    out.put(line, rank, numbers[rank] - line * size, nans);
  }
};

struct TakeRankedLoop {
  template <class T>
  static void run(const char* op, int64_t n, const SortedPlaces& out, const int64_t* order) {
    for_each_index(op, n, TakeRanked<T>{out, order});
  }
};

}  // namespace

LineOrder::LineOrder(const char* op, const Tensor& input, const AlongDim& shape, bool descending)
    : order_(static_cast<size_t>(input.numel()) * sizeof(int64_t)) {
  if (input.numel() == 0) return;
  const SortedPlaces out{order_.as<int64_t>(), nullptr, nullptr, nullptr, 0, {0, shape.size}, LinePlaces(shape)};
  if (sort_in_blocks(op, input, shape, descending, out)) return;
  pick<SortLines>(RealAndBoolTypes(), input.scalar_type(), op)(op, input, shape, descending, order_.as<int64_t>());
}

void take_sorted(const char* op, const Tensor& values, const Tensor& indices, const Tensor& input,
                 const AlongDim& shape, bool descending, const Ranks& ranks) {
  const int64_t n = shape.outer * shape.inner * ranks.count;
  if (n == 0) return;
  const SortedPlaces out{nullptr,
                         static_cast<char*>(values.data_ptr()),
                         indices.data_ptr<int64_t>(),
                         static_cast<const char*>(input.data_ptr()),
                         input.element_size(),
                         ranks,
                         LinePlaces(shape)};
  if (sort_in_blocks(op, input, shape, descending, out)) return;
  const LineOrder sorted(op, input, shape, descending);
  pick<TakeRankedLoop>(RealAndBoolTypes(), input.scalar_type(), op)(op, n, out, sorted.order());
}

}  // namespace rush::cuda
