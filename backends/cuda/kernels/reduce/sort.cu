// sort and topk.
#include "core/ops/reduce/sort.h"

#include "backends/cuda/kernels/launch.h"
#include "backends/cuda/kernels/reduce/line_order.h"
#include "backends/cuda/kernels/reduce/register_reductions.h"
#include "backends/cuda/kernels/reduce/short_lines.h"

namespace rush::cuda {

namespace {

template <class T>
struct ShortTopk {
  T* values;
  int64_t* indices;
  ShortLines<T> lines;
  int64_t k;
  bool largest, sorted;
  __device__ void operator()(int64_t line) const {
    auto* entries = lines.load(line, largest);
    const int64_t unsorted = functors::select_first(entries, lines.places.size, k);
    if (sorted) functors::sort_few(entries, unsorted);
    for (int64_t i = 0; i < k; ++i) {
      const int64_t to = lines.places.at(line, i, k);
      values[to] = lines.value(line, entries[i].index);
      indices[to] = entries[i].index;
    }
  }
};

struct ShortTopkLoop {
  template <class T>
  static void run(const Tensor& values, const Tensor& indices, const Tensor& input, const AlongDim& shape, int64_t k,
                  bool largest, bool sorted) {
    const Scratch room(ShortLines<T>::nbytes(shape));
    for_each_index(
        "topk", shape.outer * shape.inner,
        ShortTopk<T>{values.data_ptr<T>(), indices.data_ptr<int64_t>(), {input, shape, room}, k, largest, sorted});
  }
};

void sort(const Tensor& values, const Tensor& indices, const Tensor& input, const AlongDim& shape, bool descending) {
  take_sorted("sort", values, indices, input, shape, descending, {0, shape.size});
}

void topk(const Tensor& values, const Tensor& indices, const Tensor& input, const AlongDim& shape, int64_t k,
          bool largest, bool sorted) {
  if (k == 0) return;
  if (shape.size <= kShortLine && (!sorted || k <= functors::kFewEntries)) {
    return pick<ShortTopkLoop>(RealAndBoolTypes(), input.scalar_type(), "topk")(values, indices, input, shape, k,
                                                                                largest, sorted);
  }
  take_sorted("topk", values, indices, input, shape, largest, {0, k});
}

}  // namespace

void register_sort() {
  kernels::sort.set(kCUDA, sort);
  kernels::topk.set(kCUDA, topk);
}

}  // namespace rush::cuda
