// The loop nest of a reduction, which both backends walk: its dimensions in the order of memory, as few as possible.
#pragma once
#include <algorithm>
#include <limits>

#include "core/tensor.h"

namespace rush::functors {

// A dimension of the input; strides are in elements. A reduced one has no stride in the output.
struct ReduceDim {
  int64_t size, stride, out_stride;
  bool reduced;
};
using ReduceDims = InlineVector<ReduceDim, 5>;

// How many elements of `input` an output that `dims` are reduced into stands for.
inline int64_t elements_each(const Tensor& input, IntArrayRef dims) {
  int64_t count = 1;
  for (int64_t d : dims) count *= input.size(d);
  return count;
}

// Those of `input`, of which `dims` are reduced into `output`, of as many dimensions.
inline ReduceDims reduce_dims_of(const Tensor& output, const Tensor& input, IntArrayRef dims) {
  ReduceDims all;
  for (int64_t d = 0; d < input.dim(); ++d) {
    const bool reduced = std::find(dims.begin(), dims.end(), d) != dims.end();
    all.push_back({input.sizes()[d], input.strides()[d], reduced ? 0 : output.strides()[d], reduced});
  }
  return all;
}

// The same without dimensions of one element, sorted by stride, innermost first; neighbours that are contiguous with
// each other are one.
inline ReduceDims coalesced(const ReduceDims& dims) {
  ReduceDims sorted, merged;
  for (size_t d = dims.size(); d-- > 0;) {
    if (dims[d].size != 1) sorted.push_back(dims[d]);
  }
  // A dimension of stride 0 repeats the dimensions inside it.
  const auto extent = [](const ReduceDim& d) { return d.stride == 0 ? std::numeric_limits<int64_t>::max() : d.stride; };
  std::stable_sort(sorted.begin(), sorted.end(),
                   [&](const ReduceDim& a, const ReduceDim& b) { return extent(a) < extent(b); });
  const auto merges = [](const ReduceDim& outer, const ReduceDim& inner) {
    return outer.reduced == inner.reduced && outer.stride == inner.size * inner.stride &&
           outer.out_stride == inner.size * inner.out_stride;
  };
  for (const ReduceDim& next : sorted) {
    if (!merged.empty() && merges(next, merged.back())) {
      merged.back().size *= next.size;
    } else {
      merged.push_back(next);
    }
  }
  return merged;
}

}  // namespace rush::functors
