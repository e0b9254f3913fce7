// The permutation that sorts each line of a tensor in one dimension.
#pragma once
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

// Offsets of elements that are numbered line by line.
struct LinePlaces {
  int64_t size, inner;
  explicit LinePlaces(const AlongDim& shape) : size(shape.size), inner(shape.inner) {}
#ifdef __CUDACC__
  // The offset of element k of a line, if lines have `length` elements.
  __device__ int64_t at(int64_t line, int64_t k, int64_t length) const {
    return (line / inner * length + k) * inner + line % inner;
  }
  __device__ int64_t of(int64_t number) const { return at(number / size, number % size, size); }
#endif
};

}  // namespace rush::cuda
