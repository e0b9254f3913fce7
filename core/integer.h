// Arithmetic of integers that may overflow: it wraps around, as in PyTorch, so it is computed unsigned.
#pragma once
#include <type_traits>

#include "core/macros.h"

namespace rush {

template <class T>
inline constexpr bool is_integer = std::is_integral_v<T> && !std::is_same_v<T, bool>;

/// Unsigned, and at least as wide as int, to which narrower ones would be promoted.
template <class T>
using Unsigned = std::conditional_t<sizeof(T) < 8, unsigned, unsigned long long>;

/// a + b, a - b and a b modulo 2^bits, and no undefined behaviour.
template <class T>
RUSH_HD T wrap_add(T a, T b) {
  return static_cast<T>(static_cast<Unsigned<T>>(a) + static_cast<Unsigned<T>>(b));
}
template <class T>
RUSH_HD T wrap_sub(T a, T b) {
  return static_cast<T>(static_cast<Unsigned<T>>(a) - static_cast<Unsigned<T>>(b));
}
template <class T>
RUSH_HD T wrap_mul(T a, T b) {
  return static_cast<T>(static_cast<Unsigned<T>>(a) * static_cast<Unsigned<T>>(b));
}

}  // namespace rush
