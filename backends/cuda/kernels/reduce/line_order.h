// The order of the elements of each line along a dimension.
#pragma once
#include "backends/cuda/memory/scratch.h"
#include "core/ops/reduce/along_dim.h"
#include "core/tensor.h"

namespace rush::cuda {

// Sorts every line of a row-major tensor: stably, NaN as the largest. Elements are counted line by line, (outer, inner,
// size); order()[line * size + k] is the number of the element that comes k-th.
class LineOrder {
 public:
  LineOrder(const char* op, const Tensor& input, const AlongDim& shape, bool descending);
  const int64_t* order() const { return order_.as<const int64_t>(); }

 private:
  Scratch order_;
};

// Where elements so counted lie.
struct LinePlaces {
  int64_t size, inner;
  explicit LinePlaces(const AlongDim& shape) : size(shape.size), inner(shape.inner) {}
#ifdef __CUDACC__
  // Of element k of a line, where lines have `length` elements.
  __device__ int64_t at(int64_t line, int64_t k, int64_t length) const {
    return (line / inner * length + k) * inner + line % inner;
  }
  __device__ int64_t of(int64_t number) const { return at(number / size, number % size, size); }
#endif
};

}  // namespace rush::cuda
