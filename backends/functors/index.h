// What happens to an element that is written at an index: old value and new value to what is stored.
#pragma once
#include <cstdint>
#include <type_traits>

#include "backends/functors/binary.h"

namespace rush::functors {

struct WriteAssign {
  template <class T>
  RUSH_HD T operator()(T, T value) const {
    return value;
  }
};

using WriteAdd = Add;
using WriteMultiply = Mul;

// NaN on either side stays, as in PyTorch's reductions.
struct WriteMinimum {
  template <class T>
  RUSH_HD T operator()(T old, T value) const {
    return value < old || value != value ? value : old;
  }
};

struct WriteMaximum {
  template <class T>
  RUSH_HD T operator()(T old, T value) const {
    return old < value || value != value ? value : old;
  }
};

// The mean of `count` values from their sum; integers round down, and a sum of nothing stays as it is.
struct DivideByCount {
  template <class T>
  RUSH_HD T operator()(T sum, int64_t count) const {
    if (count <= 1) return sum;
    if constexpr (std::is_integral_v<T>) {
      const int64_t wide = static_cast<int64_t>(sum);
      return static_cast<T>(wide / count - (wide % count < 0 ? 1 : 0));
    } else {
      return sum / static_cast<T>(count);
    }
  }
};

}  // namespace rush::functors
