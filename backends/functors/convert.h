// One number as another type.
#pragma once
#include "core/scalar_type.h"

namespace rush::functors {

// A complex number loses its imaginary part, a fraction is cut, anything but zero is true.
template <class To, class From>
RUSH_HD To converted(From value) {
  if constexpr (is_complex_v<From> && !is_complex_v<To>) {
    if constexpr (std::is_same_v<To, bool>) {
      return value.real() != 0 || value.imag() != 0;
    } else {
      return converted<To>(value.real());
    }
  } else if constexpr (is_complex_v<To> && !is_complex_v<From>) {
    return To(static_cast<typename To::value_type>(value));
  } else if constexpr (std::is_same_v<To, bool>) {
    return value != From(0);
  } else if constexpr (std::is_same_v<To, uint64_t> && is_floating_v<From>) {
    // From 2^63 on it is no int64; what is negative wraps around.
    constexpr From kBeyond = 0x1p63f;
    if (value >= kBeyond) return static_cast<To>(static_cast<int64_t>(value - kBeyond)) + (To{1} << 63);
    return static_cast<To>(static_cast<int64_t>(value));
  } else if constexpr (std::is_integral_v<To> && is_floating_v<From>) {
#ifdef __CUDA_ARCH__
    // As the CPU does it: what To cannot hold wraps around, where the GPU's own conversion would saturate.
    return static_cast<To>(static_cast<int64_t>(value));
#else
    if constexpr (std::is_same_v<To, uint16_t> || std::is_same_v<To, uint32_t>) {
      return static_cast<To>(static_cast<int64_t>(value));
    }
    return static_cast<To>(value);
#endif
  } else {
    return static_cast<To>(value);
  }
}

}  // namespace rush::functors
