// The largest and the smallest element, and where they are.
#include "core/ops/reduce/extrema.h"

#include "backends/cpu/loops.h"
#include "backends/cpu/reduce/reduce_loops.h"
#include "backends/cpu/register.h"
#include "backends/functors/reduce.h"

namespace rush::cpu {

namespace {

template <template <class> class F>
struct ExtremeValue {
  template <class T>
  static void run(const Tensor& output, const Tensor& input, IntArrayRef dims) {
    reduce_to<T, T>(F<opmath_t<T>>(), output, input, dims);
  }
};

template <class T>
struct Found {
  opmath_t<T> value;
  int64_t index;
};

// The first extreme element of a run. The extreme value of a block is found with vectors, its index only where the
// block improves on what was there before.
template <class T, template <class> class F, class Better>
Found<T> search_run(const T* x, int64_t n) {
  constexpr int64_t kBlock = 512;
  using Math = opmath_t<T>;
  const F<Math> f;
  if (n <= reduce::kLanes) {
    Found<T> best{x[0], 0};
    for (int64_t i = 1; i < n; ++i) {
      const Math next = x[i];
      const bool better = Better()(next, best.value);
      best = {better ? next : best.value, better ? i : best.index};
    }
    return best;
  }
  Found<T> best{f.identity(), -1};
  for (int64_t from = 0; from < n; from += kBlock) {
    const int64_t to = std::min(n, from + kBlock);
    Math extreme;
    reduce::block<F<Math>, T>(&f, reinterpret_cast<const char*>(x + from), {1, to - from}, &extreme);
    if (best.index >= 0 && !Better()(extreme, best.value)) continue;
    const bool nan = functors::is_nan(extreme);
    best.index = from;
    while (nan ? !functors::is_nan(Math(x[best.index])) : Math(x[best.index]) != extreme) ++best.index;
    best.value = extreme;
    if (nan) break;
  }
  return best;
}

// Row by row into a tile of columns.
template <class T, class Better>
void search_columns(const T* x, int64_t n, int64_t stride, int64_t columns, opmath_t<T>* value, int64_t* index) {
  for (int64_t c = 0; c < columns; ++c) {
    value[c] = x[c];
    index[c] = 0;
  }
  for (int64_t i = 1; i < n; ++i) {
    x += stride;
#pragma GCC ivdep
    for (int64_t c = 0; c < columns; ++c) {
      const opmath_t<T> next = x[c];
      const bool better = Better()(next, value[c]);
      value[c] = better ? next : value[c];
      index[c] = better ? i : index[c];
    }
  }
}

template <template <class> class F, class Better>
struct ExtremeIndex {
  template <class T>
  static void run(const Tensor& values, const Tensor& indices, const Tensor& input, const AlongDim& shape) {
    constexpr int64_t kTile = 256;
    const T* x = input.const_data_ptr<T>();
    T* value_out = values.defined() ? values.data_ptr<T>() : nullptr;
    int64_t* index_out = indices.data_ptr<int64_t>();
    for_tiles<kTile>(shape, kGrain, [&](int64_t start, int64_t columns, int64_t to) {
      opmath_t<T> value[kTile];
      int64_t index[kTile];
      if (shape.inner == 1) {
        const Found<T> found = search_run<T, F, Better>(x + start, shape.size);
        value[0] = found.value;
        index[0] = found.index;
      } else {
        search_columns<T, Better>(x + start, shape.size, shape.inner, columns, value, index);
      }
      for (int64_t c = 0; c < columns; ++c) {
        if (value_out) value_out[to + c] = static_cast<T>(value[c]);
        index_out[to + c] = index[c];
      }
    });
  }
};

void extreme(const Tensor& values, const Tensor& indices, const Tensor& input, const AlongDim& shape, bool largest) {
  using Largest = ExtremeIndex<functors::Max, functors::IsLarger>;
  using Smallest = ExtremeIndex<functors::Min, functors::IsSmaller>;
  const ScalarType dtype = input.scalar_type();
  (largest ? pick<Largest>(RealAndBoolTypes(), dtype, "max") : pick<Smallest>(RealAndBoolTypes(), dtype, "min"))(
      values, indices, input, shape);
}

}  // namespace

void register_extrema() {
  set_by_dtype<kernels::amax, ExtremeValue<functors::Max>, RealAndBoolTypes, 1>(kCPU);
  set_by_dtype<kernels::amin, ExtremeValue<functors::Min>, RealAndBoolTypes, 1>(kCPU);
  kernels::extreme.set(kCPU, extreme);
}

}  // namespace rush::cpu
