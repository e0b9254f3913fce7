// Unsigned integers that order as the numbers they are made from, so that sorting and selecting are written for four
// key sizes instead of ten dtypes.
#pragma once
#include <bit>
#include <cstdint>
#include <type_traits>

#include "core/half.h"
#include "core/macros.h"
#include "core/scalar_type.h"

namespace rush::functors {

template <size_t bytes>
using UnsignedOf =
    std::conditional_t<bytes == 1, uint8_t,
                       std::conditional_t<bytes == 2, uint16_t, std::conditional_t<bytes == 4, uint32_t, uint64_t>>>;
template <class T>
using SortKey = UnsignedOf<sizeof(T)>;

// Equal numbers have equal keys, +0 and -0 too. Every NaN has the largest key.
template <class T>
RUSH_HD SortKey<T> sort_key(T value) {
  using Key = SortKey<T>;
  constexpr Key kSign = static_cast<Key>(Key(1) << (8 * sizeof(T) - 1));
  if constexpr (std::is_same_v<T, bool>) {
    return value;
  } else if constexpr (std::is_integral_v<T>) {
    return static_cast<Key>(std::is_signed_v<T> ? static_cast<Key>(value) ^ kSign : static_cast<Key>(value));
  } else {
    const opmath_t<T> number = value;
    if (number != number) return static_cast<Key>(~Key(0));
    if (number == 0) return kSign;
    const Key bits = std::bit_cast<Key>(value);
    // Positive numbers order as their bits; negative ones backwards, below them.
    return static_cast<Key>(bits & kSign ? ~bits : bits | kSign);
  }
}

}  // namespace rush::functors
