#include "backends/cuda/kernels/reduce/line_order.h"

#include <bit>

#include "backends/cuda/kernels/launch.h"
#include "backends/cuda/kernels/reduce/sort_pairs.h"
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

struct LineKeys {
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
    for_each_index(op, n, LineKeys{by_value, line_keys, shape.size});
    sort_pairs<uint64_t>(line_keys, line_keys + n, by_value, order, n,
                         std::bit_width(static_cast<uint64_t>(lines - 1)));
  }
};

}  // namespace

LineOrder::LineOrder(const char* op, const Tensor& input, const AlongDim& shape, bool descending)
    : order_(static_cast<size_t>(input.numel()) * sizeof(int64_t)) {
  if (input.numel() == 0) return;
  pick<SortLines>(RealAndBoolTypes(), input.scalar_type(), op)(op, input, shape, descending, order_.as<int64_t>());
}

}  // namespace rush::cuda
