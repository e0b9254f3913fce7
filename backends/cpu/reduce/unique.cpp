// Distinct rows of a matrix.
#include "core/ops/reduce/unique.h"

#include <numeric>

#include "backends/cpu/loops.h"
#include "backends/cpu/reduce/sort_entries.h"
#include "backends/cpu/register.h"

namespace rush::cpu {

namespace {

// order[0] to order[n - 1] = the rows' numbers in ascending order of the rows, equal ones as they were.
template <class T>
void sort_rows(const T* x, int64_t n, int64_t width, int64_t* order) {
  if (width == 1) {
    const Scratch<Entry<functors::SortKey<T>>> entries(2 * n);
    load_entries(x, 1, n, false, entries.data());
    const auto* sorted = sort_entries(entries.data(), n, entries.data() + n);
    for (int64_t i = 0; i < n; ++i) order[i] = sorted[i].index;
  } else {
    std::iota(order, order + n, 0);
    std::stable_sort(order, order + n, [&](int64_t a, int64_t b) {
      const T *first = x + a * width, *second = x + b * width;
      for (int64_t c = 0; c < width; ++c) {
        const auto left = functors::sort_key(first[c]), right = functors::sort_key(second[c]);
        if (left != right) return left < right;
      }
      return false;
    });
  }
}

template <class T>
bool equal_rows(const T* a, const T* b, int64_t width) {
  for (int64_t c = 0; c < width; ++c) {
    if (!(static_cast<opmath_t<T>>(a[c]) == static_cast<opmath_t<T>>(b[c]))) return false;
  }
  return true;
}

// row(i) is the number of the row that is i-th in the order in which equal ones are neighbours. The distinct ones are
// counted before they are written, so that nothing is larger than it has to be.
template <class T, class Row>
void write_distinct(Tensor& rows, Tensor& inverse, Tensor& counts, const Tensor& input, bool needs_inverse,
                    const Row& row) {
  const int64_t n = input.size(0), width = input.size(1);
  const T* x = input.const_data_ptr<T>();
  const auto is_first = [&](int64_t i) {
    return i == 0 || !equal_rows(x + row(i - 1) * width, x + row(i) * width, width);
  };
  int64_t distinct = 0;
  for (int64_t i = 0; i < n; ++i) distinct += is_first(i);
  rows = detail::empty_contiguous({distinct, width}, input.scalar_type(), input.device());
  counts = detail::empty_contiguous(distinct, kInt64, input.device());
  if (needs_inverse) inverse = detail::empty_contiguous(n, kInt64, input.device());
  T* to = rows.data_ptr<T>();
  int64_t *count = counts.data_ptr<int64_t>(), *number = needs_inverse ? inverse.data_ptr<int64_t>() : nullptr;
  for (int64_t i = 0, current = -1; i < n; ++i) {
    if (is_first(i)) {
      count[++current] = 0;
      for (int64_t c = 0; c < width; ++c) *to++ = x[row(i) * width + c];
    }
    ++count[current];
    if (number) number[row(i)] = current;
  }
}

struct UniqueLoop {
  template <class T>
  static void run(Tensor& rows, Tensor& inverse, Tensor& counts, const Tensor& input, bool sort, bool needs_inverse) {
    if (!sort) {
      return write_distinct<T>(rows, inverse, counts, input, needs_inverse, [](int64_t i) { return i; });
    }
    const Scratch<int64_t> order(input.size(0));
    sort_rows(input.const_data_ptr<T>(), input.size(0), input.size(1), order.data());
    write_distinct<T>(rows, inverse, counts, input, needs_inverse, [&](int64_t i) { return order[i]; });
  }
};

}  // namespace

void register_unique() { set_by_dtype<kernels::unique, UniqueLoop, RealAndBoolTypes, 3>(kCPU); }

}  // namespace rush::cpu
