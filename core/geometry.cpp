#include "core/geometry.h"

#include <algorithm>
#include <utility>

#include "core/integer.h"

namespace rush {

// Beside a size of 0 the other sizes, strides and offsets may be anything: products of them wrap around, and nothing is
// ever found by them.

DimVector contiguous_strides(IntArrayRef sizes) {
  DimVector strides(sizes.size(), 1);
  int64_t stride = 1;
  for (size_t i = sizes.size(); i-- > 0;) {
    strides[i] = stride;
    stride = wrap_mul<int64_t>(stride, std::max<int64_t>(sizes[i], 1));
  }
  return strides;
}

bool is_contiguous(IntArrayRef sizes, IntArrayRef strides) {
  int64_t expected = 1;
  bool contiguous = true;
  for (size_t i = sizes.size(); i-- > 0;) {
    if (sizes[i] == 0) return true;
    if (sizes[i] == 1) continue;
    contiguous = contiguous && strides[i] == expected;
    expected = wrap_mul<int64_t>(expected, sizes[i]);
  }
  return contiguous;
}

namespace detail {

void Geometry::transpose(int64_t dim0, int64_t dim1) {
  std::swap(sizes[dim0], sizes[dim1]);
  std::swap(strides[dim0], strides[dim1]);
}

void Geometry::permute(IntArrayRef order) {
  const DimVector old_sizes = sizes, old_strides = strides;
  for (size_t d = 0; d < order.size(); ++d) {
    sizes[d] = old_sizes[order[d]];
    strides[d] = old_strides[order[d]];
  }
}

void Geometry::select(int64_t dim, int64_t index) {
  offset = wrap_add(offset, wrap_mul(index, strides[dim]));
  sizes.erase(sizes.begin() + dim);
  strides.erase(strides.begin() + dim);
}

void Geometry::slice(int64_t dim, int64_t start, int64_t end, int64_t step) {
  int64_t skipped = 0;  // overflows only where another size is 0
  if (!__builtin_mul_overflow(start, strides[dim], &skipped)) offset = wrap_add(offset, skipped);
  sizes[dim] = (end - start) / step + ((end - start) % step != 0);
  // A step past the end is taken only by an empty or single slice, where the stride means nothing.
  if (__builtin_mul_overflow(strides[dim], step, &strides[dim])) strides[dim] = 1;
}

void Geometry::expand(IntArrayRef target) {
  const DimVector old_sizes = sizes, old_strides = strides;
  const size_t lead = target.size() - old_sizes.size();
  sizes = target;
  strides = DimVector(target.size(), 0);
  for (size_t d = 0; d < old_sizes.size(); ++d) {
    strides[lead + d] = old_sizes[d] == 1 && target[lead + d] != 1 ? 0 : old_strides[d];
  }
}

}  // namespace detail

std::optional<DimVector> view_strides(IntArrayRef sizes, IntArrayRef strides, IntArrayRef shape) {
  DimVector result(shape.size(), 1);
  const bool empty = std::find(sizes.begin(), sizes.end(), 0) != sizes.end();
  if (empty) return contiguous_strides(shape);
  if (sizes.empty()) return result;
  // Walks groups of dimensions that are contiguous with each other, and splits each group over the new sizes.
  int64_t next = static_cast<int64_t>(shape.size()) - 1;
  int64_t base_stride = strides.back();
  int64_t run = 1, taken = 1;
  for (int64_t d = static_cast<int64_t>(sizes.size()) - 1; d >= 0; --d) {
    run *= sizes[d];
    int64_t following = 0;  // where the run goes on; out of range it goes on nowhere
    const bool leaves = __builtin_mul_overflow(run, base_stride, &following);
    const bool ends = d == 0 || (sizes[d - 1] != 1 && (leaves || strides[d - 1] != following));
    if (!ends) continue;
    while (next >= 0 && (taken < run || shape[next] == 1)) {
      result[next] = taken * base_stride;
      taken *= shape[next];
      --next;
    }
    if (taken != run) return std::nullopt;
    if (d > 0) {
      base_stride = strides[d - 1];
      run = taken = 1;
    }
  }
  if (next != -1) return std::nullopt;
  return result;
}

}  // namespace rush
