// Binary search in sorted rows, and membership.
#include "core/ops/reduce/search.h"

#include "backends/cuda/device_assert.h"
#include "backends/cuda/kernels/launch.h"
#include "backends/cuda/kernels/reduce/line_order.h"
#include "backends/cuda/kernels/reduce/register_reductions.h"
#include "backends/functors/first_where.h"
#include "backends/functors/reduce.h"
#include "backends/functors/sort_key.h"

namespace rush::cuda {

namespace {

// The first position whose element, taken in `order` where there is one, does not lie before the value. NaN compares
// false with everything, so it goes to the end.
template <class T>
struct InsertionPoint {
  using Math = opmath_t<T>;
  void* out;
  const T *rows, *values;
  const int64_t* order;
  int64_t n, width;
  bool one_row, narrow, right;
  DeviceCheck check;

  __device__ void operator()(int64_t i) const {
    const int64_t row = one_row ? 0 : i / width * n;
    const Math value = static_cast<Math>(values[i]);
    int64_t low = 0, high = n;
    while (low < high) {
      const int64_t middle = low + (high - low) / 2, at = order ? order[row + middle] : middle;
      if (order && !RUSH_DEVICE_CHECK(at >= 0 && at < n, check, at, n)) break;
      const Math element = static_cast<Math>(rows[row + at]);
      if (right ? element > value : element >= value) {
        high = middle;
      } else {
        low = middle + 1;
      }
    }
    if (narrow) {
      static_cast<int32_t*>(out)[i] = static_cast<int32_t>(low);
    } else {
      static_cast<int64_t*>(out)[i] = low;
    }
  }
};

struct SearchLoop {
  template <class T>
  static void run(const Tensor& output, const Tensor& sequence, const Tensor& values, const Tensor& sorter,
                  bool right) {
    if (values.numel() == 0) return;
    for_each_index("searchsorted", values.numel(),
                   InsertionPoint<T>{output.data_ptr(), sequence.data_ptr<T>(), values.data_ptr<T>(),
                                     sorter.defined() ? sorter.data_ptr<int64_t>() : nullptr, sequence.size(-1),
                                     values.dim() ? values.size(-1) : 1, sequence.dim() == 1,
                                     output.scalar_type() == kInt32, right, device_check("searchsorted")});
  }
};

// Whether an element is among n sorted ones; NaN is among none.
template <class T>
struct IsMember {
  bool* out;
  const T *x, *wanted;
  const int64_t* order;
  int64_t n;
  bool invert;
  __device__ void operator()(int64_t i) const {
    const auto key = functors::sort_key(x[i]);
    const int64_t at = functors::first_where(n, [&](int64_t k) { return functors::sort_key(wanted[order[k]]) >= key; });
    const bool nan = functors::is_nan(static_cast<opmath_t<T>>(x[i]));
    const bool found = !nan && at < n && functors::sort_key(wanted[order[at]]) == key;
    out[i] = found != invert;
  }
};

struct IsinLoop {
  template <class T>
  static void run(const Tensor& output, const Tensor& elements, const Tensor& test, bool invert) {
    const LineOrder sorted("isin", test, AlongDim(1, test.numel(), 1), false);
    for_each_index("isin", elements.numel(),
                   IsMember<T>{output.data_ptr<bool>(), elements.data_ptr<T>(), test.data_ptr<T>(), sorted.order(),
                               test.numel(), invert});
  }
};

}  // namespace

void register_search() {
  set_by_dtype<kernels::searchsorted, SearchLoop, RealAndBoolTypes, 2>(kCUDA);
  set_by_dtype<kernels::isin, IsinLoop, RealAndBoolTypes, 1>(kCUDA);
}

}  // namespace rush::cuda
