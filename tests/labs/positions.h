// All positions of a tensor, without an iterator.
#pragma once
#include "core/array_ref.h"

namespace rush::labs {

// Calls visit(position) for each position of a tensor of these sizes, in row-major order.
template <class Visit>
void for_each_position(IntArrayRef sizes, const Visit& visit) {
  int64_t count = 1;
  for (int64_t size : sizes) count *= size;
  for (int64_t number = 0; number < count; ++number) {
    DimVector position(sizes.size(), 0);
    int64_t rest = number;
    for (size_t d = sizes.size(); d-- > 0;) {
      position[d] = rest % sizes[d];
      rest /= sizes[d];
    }
    visit(position);
  }
}

}  // namespace rush::labs
