// The cross product of two vectors of three numbers.
#pragma once
#include "backends/functors/binary.h"

namespace rush::functors {

// out_i = a_(i+1) b_(i+2) - a_(i+2) b_(i+1), counted modulo 3, rounded after each operation. The numbers of each lie
// `stride` apart.
template <class T>
RUSH_HD void cross(const T* a, const T* b, int64_t stride, T* out) {
  using Math = opmath_t<T>;
  for (int i = 0; i < 3; ++i) {
    const int64_t next = (i + 1) % 3 * stride, last = (i + 2) % 3 * stride;
    const auto plus = static_cast<T>(Mul()(static_cast<Math>(a[next]), static_cast<Math>(b[last])));
    const auto minus = static_cast<T>(Mul()(static_cast<Math>(a[last]), static_cast<Math>(b[next])));
    if constexpr (is_integer<T>) {
      out[i * stride] = wrap_sub(plus, minus);
    } else {
      out[i * stride] = static_cast<T>(static_cast<Math>(plus) - static_cast<Math>(minus));
    }
  }
}

}  // namespace rush::functors
