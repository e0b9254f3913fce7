// Binary search.
#pragma once
#include <cstdint>

#include "core/macros.h"

namespace rush::functors {

// The first of the numbers [0, n) for which `holds` does, n if there is none. It holds for all numbers after one for
// which it does.
template <class Holds>
RUSH_HD int64_t first_where(int64_t n, const Holds& holds) {
  int64_t low = 0, high = n;
  while (low < high) {
    const int64_t middle = low + (high - low) / 2;
    if (holds(middle)) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return low;
}

}  // namespace rush::functors
