// What nvcc reads before every .cu file (cmake/cuda.cmake gives it by -include): how core's headers mark a function
// that both processors run, and what such a function calls on the GPU instead of its portable lines. See core/macros.h.
#pragma once
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

// Functors ask whether a number is below 0 also of unsigned numbers.
#pragma nv_diag_suppress 186

#define RUSH_DEVICE_COMPILER
#define RUSH_HD __host__ __device__
#ifdef __CUDA_ARCH__  // in the pass that compiles for the GPU
#define RUSH_DEVICE_CODE
#endif
// core/complex_math.h includes it.
#define RUSH_DEVICE_COMPLEX_MATH "backends/cuda/complex_math.h"

namespace rush::device_code {

inline __device__ uint16_t half_from_float(float value) { return __half_as_ushort(__float2half_rn(value)); }
inline __device__ float float_from_half(uint16_t bits) { return __half2float(__ushort_as_half(bits)); }
inline __device__ uint16_t bfloat16_from_float(float value) { return __bfloat16_as_ushort(__float2bfloat16_rn(value)); }

// a * b, by one instruction. From a product of 64 bits nvcc makes one with an addition of zeros to the upper half, from
// __umulhi two.
inline __device__ void multiply_wide(uint32_t a, uint32_t b, uint32_t& upper, uint32_t& lower) {
  asm("{ .reg .b64 wide; mul.wide.u32 wide, %2, %3; mov.b64 {%1, %0}, wide; }"
      : "=r"(upper), "=r"(lower)
      : "r"(a), "r"(b));
}

// The values of sinf and cosf; the angle is reduced to a quadrant once.
inline __device__ void sine_cosine(float angle, float& sine, float& cosine) { sincosf(angle, &sine, &cosine); }

}  // namespace rush::device_code
