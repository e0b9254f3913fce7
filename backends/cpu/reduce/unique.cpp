// Distinct rows of a matrix.
#include "core/ops/reduce/unique.h"

#include <numeric>
#include <vector>

#include "backends/cpu/loops.h"
#include "backends/cpu/reduce/sort_entries.h"
#include "backends/cpu/register.h"

namespace rush::cpu {

namespace {

// The rows' numbers in ascending order of the rows, equal ones as they were.
template <class T>
std::vector<int64_t> sorted_rows(const T* x, int64_t n, int64_t width) {
  std::vector<int64_t> order(static_cast<size_t>(n));
  std::iota(order.begin(), order.end(), 0);
  if (width == 1) {
    const Scratch<Entry<functors::SortKey<T>>> entries(2 * n);
    load_entries(x, 1, n, false, entries.data());
    const auto* sorted = sort_entries(entries.data(), n, entries.data() + n);
    for (size_t i = 0; i < order.size(); ++i) order[i] = sorted[i].index;
  } else {
    std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
      const T *first = x + a * width, *second = x + b * width;
      for (int64_t c = 0; c < width; ++c) {
        const auto left = functors::sort_key(first[c]), right = functors::sort_key(second[c]);
        if (left != right) return left < right;
      }
      return false;
    });
  }
  return order;
}

template <class T>
bool equal_rows(const T* a, const T* b, int64_t width) {
  for (int64_t c = 0; c < width; ++c) {
    if (!(static_cast<opmath_t<T>>(a[c]) == static_cast<opmath_t<T>>(b[c]))) return false;
  }
  return true;
}

struct UniqueLoop {
  template <class T>
  static void run(Tensor& rows, Tensor& inverse, Tensor& counts, const Tensor& input, bool sort) {
    const int64_t n = input.size(0), width = input.size(1);
    const T* x = input.const_data_ptr<T>();
    std::vector<int64_t> order;
    if (sort) order = sorted_rows(x, n, width);
    const auto row = [&](int64_t i) { return sort ? order[static_cast<size_t>(i)] : i; };
    inverse = detail::empty_contiguous(n, kInt64, input.device());
    int64_t* number = inverse.data_ptr<int64_t>();
    std::vector<int64_t> starts;  // where each distinct row begins, in sorted order
    for (int64_t i = 0; i < n; ++i) {
      if (i == 0 || !equal_rows(x + row(i - 1) * width, x + row(i) * width, width)) starts.push_back(i);
      number[row(i)] = static_cast<int64_t>(starts.size()) - 1;
    }
    const auto distinct = static_cast<int64_t>(starts.size());
    rows = detail::empty_contiguous({distinct, width}, input.scalar_type(), input.device());
    counts = detail::empty_contiguous(distinct, kInt64, input.device());
    starts.push_back(n);
    for (int64_t d = 0; d < distinct; ++d) {
      const int64_t start = starts[static_cast<size_t>(d)];
      std::copy_n(x + row(start) * width, width, rows.data_ptr<T>() + d * width);
      counts.data_ptr<int64_t>()[d] = starts[static_cast<size_t>(d) + 1] - start;
    }
  }
};

}  // namespace

void register_unique() { set_by_dtype<kernels::unique, UniqueLoop, RealAndBoolTypes, 3>(kCPU); }

}  // namespace rush::cpu
