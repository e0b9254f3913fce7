// Two numbers of 16 bits from two of float32, by one instruction.
#pragma once
#include <cuda_runtime.h>

#include <type_traits>

#include "core/half.h"

namespace rush::cuda {

/// Both rounded to T, Half or BFloat16, the first in the lower half of the word.
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

}  // namespace rush::cuda
