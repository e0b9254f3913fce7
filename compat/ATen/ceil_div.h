#pragma once
#include "c10/macros/Macros.h"

namespace at {
/// The quotient of integers, rounded up.
template <class T>
C10_ALWAYS_INLINE C10_HOST_DEVICE T ceil_div(T a, T b) {
  return (a + b - 1) / b;
}
/// The least multiple of `b` that is not below `a`.
template <class T>
C10_ALWAYS_INLINE C10_HOST_DEVICE T round_up(T a, T b) {
  return ceil_div(a, b) * b;
}
}  // namespace at
