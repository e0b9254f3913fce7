// Selection (kthvalue, topk) in short lines, with one thread for each line.
#pragma once
#include "backends/cuda/kernels/launch.h"
#include "backends/cuda/kernels/reduce/line_order.h"
#include "backends/cuda/memory/scratch.h"
#include "backends/functors/entries.h"

namespace rush::cuda {

// Note [Ties in short lines]
// kthvalue and topk may take any of several equal elements. On lines of up to kShortLine elements they run the CPU's
// algorithm and so take the one that it takes, which is also PyTorch's. Longer lines are sorted, which is faster there,
// and the first in position is taken.
inline constexpr int64_t kShortLine = 256;

// The lines of a row-major tensor, and scratch memory for their entries. No line may be longer than kShortLine.
template <class T>
struct ShortLines {
  using Entry = functors::Entry<functors::SortKey<T>>;
  const T* x;
  Entry* entries;
  LinePlaces places;

  static size_t nbytes(const AlongDim& shape) {
    return static_cast<size_t>(shape.outer * shape.inner * shape.size) * sizeof(Entry);
  }
  ShortLines(const Tensor& input, const AlongDim& shape, const Scratch& room)
      : x(input.const_data_ptr<T>()), entries(room.as<Entry>()), places(shape) {}

  // The entries of a line; with `reversed` the largest element comes first.
  __device__ Entry* load(int64_t line, bool reversed) const {
    Entry* own = entries + line * places.size;
    functors::load_entries(x + places.at(line, 0, places.size), places.inner, places.size, reversed, own);
    return own;
  }
  __device__ T value(int64_t line, int64_t k) const { return x[places.at(line, k, places.size)]; }
};

}  // namespace rush::cuda
