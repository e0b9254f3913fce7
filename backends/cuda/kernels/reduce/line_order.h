// The order of the elements of each line of a tensor in one dimension, and the elements at some ranks in it.
#pragma once
#include <algorithm>

#include "backends/cuda/memory/scratch.h"
#include "core/ops/reduce/along_dim.h"
#include "core/tensor.h"

namespace rush::cuda {

// A stable sort of every line of a row-major tensor, with NaN as the largest. Elements are numbered line by line,
// (outer, inner, size); order()[line * size + k] is the number of the k-th element.
class LineOrder {
 public:
  LineOrder(const char* op, const Tensor& input, const AlongDim& shape, bool descending);
  const int64_t* order() const { return order_.as<const int64_t>(); }

 private:
  Scratch order_;
};

// Which elements of a sorted line are taken: `count` of them from rank `first` on, or the median.
struct Ranks {
  int64_t first, count;
  bool median = false, ignores_nan = false;

  static Ranks of_median(bool ignores_nan) { return {0, 1, true, ignores_nan}; }
  // The first rank in a line of `size` elements, of which the last `nans` are NaN.
  RUSH_HD int64_t begin(int64_t size, int64_t nans) const {
    if (!median) return first;
    const int64_t numbers = size - nans;
    return nans > 0 && !ignores_nan ? numbers : (numbers > 0 ? numbers - 1 : 0) / 2;
  }
};

// values and indices, (outer, ranks.count, inner), = the elements of each line at these ranks, and where they are.
void take_sorted(const char* op, const Tensor& values, const Tensor& indices, const Tensor& input,
                 const AlongDim& shape, bool descending, const Ranks& ranks);

// Offsets of elements that are numbered line by line. Lines may be cut into chunks, no two of which differ by more than
// one element: then chunk c of line l counts as line l * chunks + c.
struct LinePlaces {
  int64_t size, inner, chunks;
  explicit LinePlaces(const AlongDim& shape, int64_t chunks = 1)
      : size(shape.size), inner(shape.inner), chunks(chunks) {}
  // The elements of the longest chunk.
  int64_t longest() const { return (size + chunks - 1) / chunks; }
#ifdef __CUDACC__
  // Which element of the line a chunk starts with, that element's offset, and how many elements there are.
  __device__ int64_t first(int64_t line) const { return chunks == 1 ? 0 : line % chunks * size / chunks; }
  __device__ int64_t start(int64_t line) const { return at(chunks == 1 ? line : line / chunks, first(line), size); }
  __device__ int64_t count(int64_t line) const {
    return chunks == 1 ? size : (line % chunks + 1) * size / chunks - first(line);
  }
  // The offset of element k of a line, if lines have `length` elements.
  __device__ int64_t at(int64_t line, int64_t k, int64_t length) const {
    return (line / inner * length + k) * inner + line % inner;
  }
  __device__ int64_t of(int64_t number) const { return at(number / size, number % size, size); }
#endif
};

}  // namespace rush::cuda
