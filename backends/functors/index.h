// What happens to an element that is written at an index: old value and new value to what is stored.
#pragma once
#include <cstdint>
#include <type_traits>

#include "backends/functors/binary.h"
#include "backends/functors/reduce.h"

namespace rush::functors {

RUSH_FUNCTOR(WriteAssign, T, T, T value) { return value; }

using WriteAdd = Add;
using WriteMultiply = Mul;

// NaN on either side stays, as in PyTorch's reductions.
using WriteMinimum = TakeMin;
using WriteMaximum = TakeMax;

// The mean of `count` values from their sum; integers round down, and a sum of nothing stays as it is.
RUSH_FUNCTOR(DivideByCount, T, T sum, int64_t count) {
  if (count <= 1) return sum;
  if constexpr (std::is_integral_v<T>) {
    const int64_t wide = static_cast<int64_t>(sum);
    return static_cast<T>(wide / count - (wide % count < 0 ? 1 : 0));
  } else {
    return sum / static_cast<T>(count);
  }
}

}  // namespace rush::functors
