// Lab 1, strides and views: this file takes the place of core/geometry.cpp. What each function has to do stands in
// core/geometry.h and in docs/labs/geometry.md. Write them in this order; `./rush lab 1` checks them in this order.
#include "core/geometry.h"

#include "core/error/error.h"

namespace rush {

// Element (i_0, i_1, ...) of a row-major tensor comes after all elements with a smaller i_0, then after those with the
// same i_0 and a smaller i_1, and so on. How many elements does one step in dimension d pass?
DimVector contiguous_strides(IntArrayRef sizes) {
  RUSH_THROW(NotImplementedError, "begin here: return a DimVector with one stride for each of the sizes ", sizes,
             "; the last stride is 1");
}

// Whether the elements lie one after another in row-major order.
bool is_contiguous(IntArrayRef sizes, IntArrayRef strides) {
  RUSH_THROW(NotImplementedError, "next: compare the strides ", strides, " with those that sizes ", sizes,
             " have in row-major order, where a stride matters");
}

namespace detail {

// The two dimensions swapped.
void Geometry::transpose(int64_t dim0, int64_t dim1) {
  RUSH_THROW(NotImplementedError, "next: change `sizes` and `strides` so that dimensions ", dim0, " and ", dim1,
             " are swapped");
}

// Dimension d of the view is dimension order[d] of this.
void Geometry::permute(IntArrayRef order) {
  RUSH_THROW(NotImplementedError, "next: give dimension d the size and the stride of dimension order[d], order being ",
             order);
}

// The elements at `index` of `dim`, without that dimension.
void Geometry::select(int64_t dim, int64_t index) {
  RUSH_THROW(NotImplementedError, "next: move `offset` to the first element with index ", index, " in dimension ", dim,
             ", and drop that dimension");
}

// Elements start, start + step, ... before `end` of `dim`.
void Geometry::slice(int64_t dim, int64_t start, int64_t end, int64_t step) {
  RUSH_THROW(NotImplementedError, "next: move `offset` to index ", start, " of dimension ", dim,
             ", and change the size and the stride of that dimension; end is ", end, ", step is ", step);
}

// Broadcast to `target`.
void Geometry::expand(IntArrayRef target) {
  RUSH_THROW(NotImplementedError, "next: give the view the sizes ", target,
             " and a stride of 0 wherever an element repeats");
}

}  // namespace detail

// Strides with which elements laid out as (sizes, strides) can be seen in `shape`; nothing when they cannot.
std::optional<DimVector> view_strides(IntArrayRef sizes, IntArrayRef strides, IntArrayRef shape) {
  RUSH_THROW(NotImplementedError, "last: find strides for the shape ", shape, " over elements of sizes ", sizes,
             " and strides ", strides, ", or return std::nullopt");
}

}  // namespace rush
