// What the derivatives of reductions keep of the shapes.
#pragma once
#include <algorithm>

#include "core/ops/view/view.h"
#include "core/tensor.h"

namespace rush {

// The input's sizes, and the sizes of a reduced tensor whose reduced dimensions are kept as ones, so that it broadcasts
// to them.
struct ReducedShape {
  DimVector sizes, kept, dims;
  int64_t count = 1;  // how many elements each result was reduced from; 1 for none, whose gradient has no elements

  void save(const Tensor& self, OptionalIntArrayRef dim) {
    sizes = kept = self.sizes();
    dims = wrap_dims(dim ? *dim : IntArrayRef(), self.dim(), "backward", true);
    if (self.dim() == 0) dims.clear();
    for (int64_t d : dims) {
      count *= sizes[d];
      kept[d] = 1;
    }
    count = std::max<int64_t>(count, 1);
  }
  Tensor restore(const Tensor& reduced) const {
    return reduced.sizes() == IntArrayRef(kept) ? reduced : reduced.reshape(kept);
  }
};

}  // namespace rush
