// sort and topk.
#include "core/ops/reduce/sort.h"

#include "backends/cuda/kernels/launch.h"
#include "backends/cuda/kernels/reduce/block_sort.h"
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

struct TakeCandidates {
  int64_t* indices;
  const int64_t* candidates;  // (lines, count)
  int64_t count, k;
  __device__ void operator()(int64_t i) const { indices[i] = candidates[i / k * count + indices[i]]; }
};

// Few of a line that is too long for a block are among as many of each of its chunks.
void topk_of_long(const Tensor& values, const Tensor& indices, const Tensor& input, const AlongDim& shape, int64_t k,
                  bool largest) {
  constexpr int64_t kChunk = 1024;
  const int64_t longest = kLongestInBlock / (input.element_size() == 8 ? 2 : 1);
  if (shape.inner > 1 || shape.size <= longest || k > kChunk / 8) {
    return take_sorted("topk", values, indices, input, shape, largest, {0, k});
  }
  const LinePlaces places(shape, (shape.size + kChunk - 1) / kChunk);
  const int64_t count = places.chunks * k;
  const Tensor candidates = rush::detail::empty_contiguous({shape.outer, count}, input.scalar_type(), input.device());
  const Tensor numbers = rush::detail::empty_contiguous({shape.outer, count}, kInt64, input.device());
  const SortedPlaces out{nullptr,
                         static_cast<char*>(candidates.data_ptr()),
                         numbers.data_ptr<int64_t>(),
                         static_cast<const char*>(input.data_ptr()),
                         input.element_size(),
                         {0, k},
                         places};
  sort_in_blocks("topk", input, shape, largest, out);
  topk_of_long(values, indices, candidates, AlongDim(shape.outer, count, 1), k, largest);
  for_each_index("topk", shape.outer * k,
                 TakeCandidates{indices.data_ptr<int64_t>(), numbers.data_ptr<int64_t>(), count, k});
}

void topk(const Tensor& values, const Tensor& indices, const Tensor& input, const AlongDim& shape, int64_t k,
          bool largest, bool sorted) {
  if (k == 0) return;
  if (shape.size <= kShortLine && (!sorted || k <= functors::kFewEntries)) {
    return pick<ShortTopkLoop>(RealAndBoolTypes(), input.scalar_type(), "topk")(values, indices, input, shape, k,
                                                                                largest, sorted);
  }
  topk_of_long(values, indices, input, shape, k, largest);
}

}  // namespace

void register_sort() {
  kernels::sort.set(kCUDA, sort);
  kernels::topk.set(kCUDA, topk);
}

}  // namespace rush::cuda
