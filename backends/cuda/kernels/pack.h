// Two numbers of 16 bits from two of float32, by one instruction.
#pragma once
#include <type_traits>

#include "backends/cuda/kernels/launch.h"
#include "core/half.h"

namespace rush::cuda {

// Both rounded to T, Half or BFloat16, the first in the lower half of the word.
template <class T>
__device__ inline uint32_t pack(float low, float high) {
  static_assert(std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>);
  uint32_t word;
  if constexpr (std::is_same_v<T, BFloat16>) {
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(high), "f"(low));
  } else {
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(high), "f"(low));
  }
  return word;
}

template <class T, class M>
__device__ Lanes<T, 2> rounded_pair(M a, M b) {
  if constexpr (sizeof(T) == 2) {
    const uint32_t both = pack<T>(a, b);
    return {T::from_bits(static_cast<uint16_t>(both)), T::from_bits(static_cast<uint16_t>(both >> 16))};
  } else {
    return {static_cast<T>(a), static_cast<T>(b)};
  }
}

}  // namespace rush::cuda
