// A row-major tensor seen along one dimension.
#pragma once
#include "core/array_ref.h"

namespace rush {

/// (outer, size, inner): the sizes before a dimension multiplied, its own, those after it multiplied. A 0-dimensional
/// tensor has one dimension of size one.
struct AlongDim {
  AlongDim(int64_t before, int64_t along, int64_t after) : outer(before), size(along), inner(after) {}
  AlongDim(IntArrayRef sizes, int64_t dim) {
    for (int64_t d = 0; d < static_cast<int64_t>(sizes.size()); ++d) {
      (d < dim ? outer : d == dim ? size : inner) *= sizes[d];
    }
  }
  int64_t outer = 1, size = 1, inner = 1;
};

}  // namespace rush
