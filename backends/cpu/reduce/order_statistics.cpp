// kthvalue, median and mode, on the elements' sort keys.
#include "core/ops/reduce/order_statistics.h"

#include "backends/cpu/loops.h"
#include "backends/cpu/reduce/sort_entries.h"
#include "backends/cpu/register.h"
#include "backends/functors/reduce.h"

namespace rush::cpu {

namespace {

// Picks one element of every line: find(line's first element, stride, entries, scratch) returns its position.
template <class T, class Find>
void pick_lines(const Tensor& values, const Tensor& indices, const Tensor& input, const AlongDim& shape,
                const Find& find) {
  const T* x = input.const_data_ptr<T>();
  T* value = values.data_ptr<T>();
  int64_t* index = indices.data_ptr<int64_t>();
  for_entry_lines<T>(shape, [&](int64_t line, int64_t start, auto* entries, auto* scratch) {
    const int64_t at = find(x + start, entries, scratch);
    value[line] = x[start + at * shape.inner];
    index[line] = at;
  });
}

template <class Key>
struct Ranked {
  Key key;
  int64_t rank, equals;  // its rank among the keys equal to it, and how many these are
};

template <class Key>
Ranked<Key> key_of_rank_among_few(Key* keys, int64_t n, int64_t k) {
  std::nth_element(keys, keys + k, keys + n);
  const Key key = keys[k];
  return {key, k - std::count_if(keys, keys + k, [=](Key other) { return other < key; }),
          std::count(keys, keys + n, key)};
}

// The key that has rank k among n, by counts of 8-bit digits, the most significant one first. Each pass keeps the keys
// that have the wanted digit. `keys` is overwritten.
template <class Key>
Ranked<Key> key_of_rank(Key* keys, int64_t n, int64_t k) {
  constexpr int64_t kFew = 128;
  if (n <= kFew) return key_of_rank_among_few(keys, n, k);
  for (int shift = 8 * sizeof(Key) - 8; shift >= 0; shift -= 8) {
    int64_t counts[256] = {};
    for (int64_t i = 0; i < n; ++i) ++counts[keys[i] >> shift & 255];
    int digit = 0;
    for (; k >= counts[digit]; ++digit) k -= counts[digit];
    int64_t kept = 0;
    for (int64_t i = 0; i < n; ++i) {
      keys[kept] = keys[i];
      kept += static_cast<int>(keys[i] >> shift & 255) == digit;
    }
    n = kept;
  }
  return {keys[0], k, n};
}

template <class T>
Ranked<functors::SortKey<T>> key_of_rank(const T* x, int64_t stride, int64_t n, int64_t k,
                                         functors::SortKey<T>* scratch) {
  for (int64_t i = 0; i < n; ++i) scratch[i] = functors::sort_key(x[i * stride]);
  return key_of_rank(scratch, n, k);
}

// The position of the element that has the key, and `rank` equal ones before it.
template <class T>
int64_t position_of(const T* x, int64_t stride, Ranked<functors::SortKey<T>> wanted) {
  for (int64_t i = 0;; ++i) {
    if (functors::sort_key(x[i * stride]) == wanted.key && wanted.rank-- == 0) return i;
  }
}

// Which of several equal elements is taken follows from PyTorch's selection; where there is one, a count is faster.
struct KthValueLoop {
  template <class T>
  static void run(const Tensor& values, const Tensor& indices, const Tensor& input, const AlongDim& shape, int64_t k) {
    pick_lines<T>(values, indices, input, shape, [&](const T* x, auto* entries, auto*) {
      auto* keys = reinterpret_cast<functors::SortKey<T>*>(entries);
      const auto wanted = key_of_rank(x, shape.inner, shape.size, k - 1, keys);
      if (wanted.equals == 1) return position_of(x, shape.inner, wanted);
      load_entries(x, shape.inner, shape.size, false, entries);
      return functors::quick_select(entries, shape.size, k - 1);
    });
  }
};

struct MedianLoop {
  template <class T>
  static void run(const Tensor& values, const Tensor& indices, const Tensor& input, const AlongDim& shape,
                  bool ignore_nan) {
    const int64_t n = shape.size;
    pick_lines<T>(values, indices, input, shape, [&](const T* x, auto* entries, auto*) -> int64_t {
      int64_t nans = 0;
      for (int64_t i = 0; i < n; ++i) {
        if (!functors::is_nan(static_cast<opmath_t<T>>(x[i * shape.inner]))) continue;
        if (!ignore_nan) return i;
        ++nans;
      }
      const int64_t middle = std::max<int64_t>(n - nans - 1, 0) / 2;
      auto* keys = reinterpret_cast<functors::SortKey<T>*>(entries);
      return position_of(x, shape.inner, key_of_rank(x, shape.inner, n, middle, keys));
    });
  }
};

struct ModeLoop {
  template <class T>
  static void run(const Tensor& values, const Tensor& indices, const Tensor& input, const AlongDim& shape) {
    pick_lines<T>(values, indices, input, shape, [&](const T* x, auto* entries, auto* scratch) {
      load_entries(x, shape.inner, shape.size, false, entries);
      const auto* sorted = sort_entries(entries, shape.size, scratch);
      int64_t best = 0, longest = 0;
      for (int64_t i = 0, first = 0; i < shape.size; ++i) {
        if (i + 1 < shape.size && sorted[i + 1].key == sorted[i].key) continue;
        if (i + 1 - first > longest) {
          longest = i + 1 - first;
          best = i;
        }
        first = i + 1;
      }
      return sorted[best].index;
    });
  }
};

}  // namespace

void register_order_statistics() {
  set_by_dtype<kernels::kthvalue, KthValueLoop, RealAndBoolTypes, 2>(kCPU);
  set_by_dtype<kernels::median, MedianLoop, RealAndBoolTypes, 2>(kCPU);
  set_by_dtype<kernels::mode, ModeLoop, RealAndBoolTypes, 2>(kCPU);
}

}  // namespace rush::cpu
