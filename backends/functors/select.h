// Note [Functors on one number and on several]
// A functor is a formula in a template parameter T. T is float or double on both devices, a complex number, or, on the
// CPU, cpu::Vec: as many floats as a register holds. For that, a formula that Vec takes part in writes
// `select(condition, a, b)` for `condition ? a : b`, constants as T(0.5), and calls exp, tanh, ... unqualified after
// `using std::exp`.
#pragma once
#include "core/integer.h"
#include "core/macros.h"

namespace rush::functors {

// Of integers by their bits: for a condition that holds at random, a branch would be mispredicted.
template <class T>
RUSH_HD T select(bool condition, T a, T b) {
  if constexpr (is_integer<T>) return static_cast<T>(b ^ ((a ^ b) & -static_cast<T>(condition)));
  return condition ? a : b;
}

}  // namespace rush::functors
