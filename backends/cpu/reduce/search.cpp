// Binary search in sorted rows, and membership.
#include "core/ops/reduce/search.h"

#include <vector>

#include "backends/cpu/loops.h"
#include "backends/cpu/reduce/sort_entries.h"
#include "backends/cpu/register.h"
#include "backends/functors/reduce.h"

namespace rush::cpu {

namespace {

// The first position whose element, taken in `order` where there is one, does not lie before `value`. NaN compares
// false with everything, so it goes to the end.
template <class Math, class T>
int64_t insertion_point(const T* row, const int64_t* order, int64_t n, Math value, bool right) {
  int64_t low = 0, high = n;
  while (low < high) {
    const int64_t middle = low + (high - low) / 2;
    const auto element = static_cast<Math>(row[order ? order[middle] : middle]);
    const bool stays = right ? element > value : element >= value;
    (stays ? high : low) = stays ? middle : middle + 1;
  }
  return low;
}

void check_order(const Tensor& sorter, int64_t n) {
  const int64_t* order = sorter.data_ptr<int64_t>();
  for (int64_t i = 0; i < sorter.numel(); ++i) {
    RUSH_CHECK_INDEX(order[i] >= 0 && order[i] < n, "searchsorted: the sorter holds ", order[i],
                     ", rows of the sequence have ", n, " elements");
  }
}

struct SearchLoop {
  template <class T>
  static void run(const Tensor& output, const Tensor& sequence, const Tensor& values, const Tensor& sorter,
                  bool right) {
    if (values.numel() == 0) return;
    const int64_t n = sequence.size(-1), width = values.dim() ? values.size(-1) : 1;
    if (sorter.defined()) check_order(sorter, n);
    const T *rows = sequence.const_data_ptr<T>(), *x = values.const_data_ptr<T>();
    const int64_t* order = sorter.defined() ? sorter.data_ptr<int64_t>() : nullptr;
    const bool one_row = sequence.dim() == 1, narrow = output.scalar_type() == kInt32;
    void* out = output.data_ptr();
    parallel_for(0, values.numel(), kGrain / 16, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t row = one_row ? 0 : i / width * n;
        const int64_t at =
            insertion_point(rows + row, order ? order + row : nullptr, n, static_cast<opmath_t<T>>(x[i]), right);
        if (narrow) {
          static_cast<int32_t*>(out)[i] = static_cast<int32_t>(at);
        } else {
          static_cast<int64_t*>(out)[i] = at;
        }
      }
    });
  }
};

struct IsinLoop {
  template <class T>
  static void run(const Tensor& output, const Tensor& elements, const Tensor& test, bool invert) {
    const T *x = elements.const_data_ptr<T>(), *wanted = test.const_data_ptr<T>();
    bool* out = output.data_ptr<bool>();
    std::vector<functors::SortKey<T>> keys;
    keys.reserve(static_cast<size_t>(test.numel()));
    for (int64_t i = 0; i < test.numel(); ++i) {
      if (!functors::is_nan(static_cast<opmath_t<T>>(wanted[i]))) keys.push_back(functors::sort_key(wanted[i]));
    }
    std::sort(keys.begin(), keys.end());
    parallel_for(0, elements.numel(), kGrain / 16, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        // A NaN shares its key only with the largest integer of the same size, which is of another dtype.
        out[i] = std::binary_search(keys.begin(), keys.end(), functors::sort_key(x[i])) != invert;
      }
    });
  }
};

}  // namespace

void register_search() {
  set_by_dtype<kernels::searchsorted, SearchLoop, RealAndBoolTypes, 2>(kCPU);
  set_by_dtype<kernels::isin, IsinLoop, RealAndBoolTypes, 1>(kCPU);
}

}  // namespace rush::cpu
