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

struct KthValueLoop {
  template <class T>
  static void run(const Tensor& values, const Tensor& indices, const Tensor& input, const AlongDim& shape, int64_t k) {
    pick_lines<T>(values, indices, input, shape, [&](const T* x, auto* entries, auto*) {
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
    pick_lines<T>(values, indices, input, shape, [&](const T* x, auto* entries, auto*) {
      int64_t nans = 0;
      for (int64_t i = 0; i < n; ++i) {
        if (!functors::is_nan(static_cast<opmath_t<T>>(x[i * shape.inner]))) continue;
        if (!ignore_nan) return i;
        ++nans;
      }
      load_entries(x, shape.inner, n, false, entries);
      const int64_t middle = std::max<int64_t>(n - nans - 1, 0) / 2;
      std::nth_element(entries, entries + middle, entries + n, before<functors::SortKey<T>>);
      return entries[middle].index;
    });
  }
};

struct ModeLoop {
  template <class T>
  static void run(const Tensor& values, const Tensor& indices, const Tensor& input, const AlongDim& shape) {
    pick_lines<T>(values, indices, input, shape, [&](const T* x, auto* entries, auto* scratch) {
      load_entries(x, shape.inner, shape.size, false, entries);
      sort_entries(entries, shape.size, scratch);
      int64_t best = 0, longest = 0;
      for (int64_t i = 0, first = 0; i < shape.size; ++i) {
        if (i + 1 < shape.size && entries[i + 1].key == entries[i].key) continue;
        if (i + 1 - first > longest) {
          longest = i + 1 - first;
          best = i;
        }
        first = i + 1;
      }
      return entries[best].index;
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
