// Where the elements of a tensor lie in its storage: sizes, strides and an offset. A view is another geometry over the
// same storage.
#pragma once
#include <optional>

#include "core/array_ref.h"

namespace rush {

// Row-major strides of `sizes`, in elements. A size of 0 counts as 1.
DimVector contiguous_strides(IntArrayRef sizes);
// Whether the elements lie one after another in row-major order. The stride of a dimension of size 1 does not matter.
bool is_contiguous(IntArrayRef sizes, IntArrayRef strides);
/// Strides with which elements laid out as (sizes, strides) can be seen in `shape`, which holds as many; nothing when
/// they cannot.
std::optional<DimVector> view_strides(IntArrayRef sizes, IntArrayRef strides, IntArrayRef shape);

namespace detail {

// Element (i_0, i_1, ...) is element number offset + sum_d i_d strides[d] of the storage. Each function turns it into
// the geometry of a view; the caller has checked the arguments, and made negative dimensions and indices positive.
struct Geometry {
  DimVector sizes, strides;
  int64_t offset = 0;

  void transpose(int64_t dim0, int64_t dim1);
  // Dimension d of the view is dimension order[d] of this.
  void permute(IntArrayRef order);
  // The elements at `index` of `dim`, without that dimension.
  void select(int64_t dim, int64_t index);
  // Elements start, start + step, ... before `end` of `dim`, with 0 <= start <= end <= sizes[dim] and step > 0.
  void slice(int64_t dim, int64_t start, int64_t end, int64_t step);
  // Broadcast to `target`: new dimensions come first, and dimensions of size 1 show their element again and again.
  void expand(IntArrayRef target);
};

}  // namespace detail

}  // namespace rush
