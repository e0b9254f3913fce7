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

// The extremes of a tile of columns, and the numbers of their rows.
constexpr int64_t kTile = 256;
template <class T>
struct FoundInColumns {
  opmath_t<T> value[kTile];
  int64_t row[kTile];
};

// Element i of column c is x[i * stride + c * apart].
template <class T, class Better>
void search_columns(const T* x, int64_t n, int64_t stride, int64_t columns, int64_t apart, FoundInColumns<T>& best) {
  const auto take_row = [&](int64_t i, auto step) {
#pragma GCC ivdep
    for (int64_t c = 0; c < columns; ++c) {
      const opmath_t<T> next = x[i * stride + c * step()];
      const bool better = (i == 0) | Better()(next, best.value[c]);
      best.value[c] = better ? next : best.value[c];
      best.row[c] = better ? i : best.row[c];
    }
  };
  std::fill_n(best.value, columns, opmath_t<T>(0));
  std::fill_n(best.row, columns, 0);
  for (int64_t i = 0; i < n; ++i) {
    apart == 1 ? take_row(i, [] { return int64_t(1); }) : take_row(i, [=] { return apart; });
  }
}

// As above for contiguous rows of a few columns: as many as fill vectors are taken as one.
template <class T, class Better>
void search_narrow(const T* x, int64_t n, int64_t columns, FoundInColumns<T>& best) {
  const int64_t group = std::min(2 * reduce::kLanes / columns, n), rest = n % group;
  FoundInColumns<T> last;
  search_columns<T, Better>(x, n / group, columns * group, columns * group, 1, best);
  search_columns<T, Better>(x + (n - rest) * columns, 1, 0, columns * rest, 1, last);
  for (int64_t c = 0; c < columns * group; ++c) best.row[c] = best.row[c] * group + c / columns;
  const auto merge = [&](int64_t c, opmath_t<T> value, int64_t row) {
    const bool equal = !Better()(value, best.value[c]) && !Better()(best.value[c], value);
    if (equal ? row > best.row[c] : !Better()(value, best.value[c])) return;
    best.value[c] = value;
    best.row[c] = row;
  };
  for (int64_t c = columns; c < columns * group; ++c) merge(c % columns, best.value[c], best.row[c]);
  for (int64_t c = 0; c < columns * rest; ++c) merge(c % columns, last.value[c], n - rest + c / columns);
}

template <template <class> class F, class Better>
struct ExtremeIndex {
  template <class T>
  static void run(const Tensor& values, const Tensor& indices, const Tensor& input, const AlongDim& shape) {
    const T* x = input.const_data_ptr<T>();
    T* value_out = values.defined() ? values.data_ptr<T>() : nullptr;
    int64_t* index_out = indices.data_ptr<int64_t>();
    const int64_t n = shape.size;
    const auto store = [&](int64_t to, int64_t columns, const opmath_t<T>* value, const int64_t* index) {
      for (int64_t c = 0; c < columns; ++c) {
        if (value_out) value_out[to + c] = static_cast<T>(value[c]);
        index_out[to + c] = index[c];
      }
    };
    if (shape.inner == 1 && n <= reduce::kLanes && shape.outer >= reduce::kLanes) {  // short rows, as columns
      return for_tiles<kTile>({1, 1, shape.outer}, kGrain / n, [&](int64_t, int64_t rows, int64_t first) {
        FoundInColumns<T> found;
        search_columns<T, Better>(x + first * n, n, 1, rows, n, found);
        store(first, rows, found.value, found.row);
      });
    }
    for_tiles<kTile>(shape, kGrain, [&](int64_t start, int64_t columns, int64_t to) {
      if (shape.inner == 1) {
        const Found<T> found = search_run<T, F, Better>(x + start, n);
        return store(to, 1, &found.value, &found.index);
      }
      FoundInColumns<T> found;
      if (columns == shape.inner && columns < reduce::kLanes) {
        search_narrow<T, Better>(x + start, n, columns, found);
      } else {
        search_columns<T, Better>(x + start, n, shape.inner, columns, 1, found);
      }
      store(to, columns, found.value, found.row);
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

void aminmax(const Tensor& smallest, const Tensor& largest, const Tensor& input, IntArrayRef dims) {
  kernels::amin(kCPU, smallest, input, dims);
  kernels::amax(kCPU, largest, input, dims);
}

}  // namespace

void register_extrema() {
  set_by_dtype<kernels::amax, ExtremeValue<functors::Max>, RealAndBoolTypes, 1>(kCPU);
  set_by_dtype<kernels::amin, ExtremeValue<functors::Min>, RealAndBoolTypes, 1>(kCPU);
  kernels::aminmax.set(kCPU, aminmax);
  kernels::extreme.set(kCPU, extreme);
}

}  // namespace rush::cpu
