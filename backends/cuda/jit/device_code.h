// What NVRTC reads before every source: what backends/cuda/device_code.h is for nvcc. The conversions are the
// instructions that CUDA's headers for 16-bit numbers come to, whose parsing would take longer than most kernels.
#pragma once
#include <cstdint>

// Functors ask whether a number is below 0 also of unsigned numbers.
#pragma nv_diag_suppress 186

#define RUSH_DEVICE_COMPILER
#define RUSH_DEVICE_CODE
#define RUSH_HD __host__ __device__
#define __extension__  // GCC's word before what standard C++ lacks
#define RUSH_DEVICE_COMPLEX_MATH "backends/cuda/complex_math.h"

namespace rush::device_code {

inline __device__ uint16_t half_from_float(float value) {
  uint16_t bits;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(value));
  return bits;
}

inline __device__ float float_from_half(uint16_t bits) {
  float value;
  asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits));
  return value;
}

inline __device__ uint16_t bfloat16_from_float(float value) {
#if __CUDA_ARCH__ >= 800
  uint16_t bits;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(bits) : "f"(value));
  return bits;
#else
  const uint32_t bits = __float_as_uint(value);
  if ((bits & 0x7fffffff) > 0x7f800000) return 0x7fff;
  return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
#endif
}

// a * b, by one instruction: see backends/cuda/device_code.h.
inline __device__ void multiply_wide(uint32_t a, uint32_t b, uint32_t& upper, uint32_t& lower) {
  asm("{ .reg .b64 wide; mul.wide.u32 wide, %2, %3; mov.b64 {%1, %0}, wide; }"
      : "=r"(upper), "=r"(lower)
      : "r"(a), "r"(b));
}

// The values of sinf and cosf; the angle is reduced to a quadrant once.
inline __device__ void sine_cosine(float angle, float& sine, float& cosine) { sincosf(angle, &sine, &cosine); }

}  // namespace rush::device_code
