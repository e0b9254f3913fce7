// Box and Muller's transform on the GPU.
#pragma once
#include "core/box_muller.h"

namespace rush::cuda {

// Note [Normal numbers on the GPU]
// Filling memory with normal numbers is bound by arithmetic: at 60 instructions a number it takes twice as long as the
// writing. Of these the general logf, sincosf and sqrtf were two thirds, most of it for arguments that do not occur: u
// lies in [2^-33, 1] and v in [0, 2 pi]. So here are polynomials for these ranges alone, from Moshier's Cephes library
// (logf.c, sinf.c). They are within a unit in the last place of the exact values or 7e-8, whichever is more, so that
// the numbers agree with the CPU's to rounding. (The approximate logarithm of the hardware would not do: it is off by
// 2^-22 near u = 1, where the logarithm vanishes.)
//
// Numbers that are rounded to 16 bits have half of the bytes, and so of the time. For them the approximations of the
// hardware do: sine and cosine are off by 2^-20 at most, and near u = 1 two terms of the logarithm's series are exact
// enough. What comes out is within a unit in the last place of 16 bits, or 4e-6.

// -2 ln u for u in [2^-33, 1]. With u = m 2^k, m in [sqrt(1/2), sqrt(2)) and f = m - 1 it is
//   -2 f + f^2 + f^3 p(f) - 2 k ln 2
// where ln 2 is split so that its larger part times k is exact.
__device__ inline float minus_two_log(float u) {
  constexpr uint32_t kSqrtHalf = 0x3f3504f3;
  const uint32_t bits = __float_as_uint(u), exponent = (bits - kSqrtHalf) & 0xff800000u;
  const float f = __uint_as_float(bits - exponent) - 1.0f, square = f * f;
  const float k = static_cast<float>(static_cast<int>(exponent));  // times 2^23
  float p = -2 * 7.0376836292e-2f;
  p = fmaf(p, f, 2 * 1.1514610310e-1f);
  p = fmaf(p, f, -2 * 1.1676998740e-1f);
  p = fmaf(p, f, 2 * 1.2420140846e-1f);
  p = fmaf(p, f, -2 * 1.4249322787e-1f);
  p = fmaf(p, f, 2 * 1.6668057665e-1f);
  p = fmaf(p, f, -2 * 2.0000714765e-1f);
  p = fmaf(p, f, 2 * 2.4999993993e-1f);
  p = fmaf(p, f, -2 * 3.3333331174e-1f);
  const float rest = fmaf(k, 0x1p-22f * 2.12194440e-4f, fmaf(p * f, square, square));
  return fmaf(k, -0x1p-22f * 0.693359375f, fmaf(-2.0f, f, rest));
}

// sin v and cos v for v in [0, 2 pi]: v = q pi/2 + r with r in [-pi/4, pi/4].
__device__ inline void sincos_of_turn(float v, float& sine, float& cosine) {
  constexpr float kRound = 12582912.0f;  // 1.5 2^23: a sum with it has no bits below 1
  const float rounded = fmaf(v, 0.636619772f, kRound);
  const uint32_t quadrant = __float_as_uint(rounded);  // in its lowest bits
  const float q = rounded - kRound;
  const float r = fmaf(q, 4.37113883e-8f, fmaf(q, -1.57079637f, v)), square = r * r;
  float s = fmaf(-1.9515295891e-4f, square, 8.3321608736e-3f);
  s = fmaf(s, square, -1.6666654611e-1f);
  s = fmaf(r * square, s, r);
  float c = fmaf(2.443315711809948e-5f, square, -1.388731625493765e-3f);
  c = fmaf(c, square, 4.166664568298827e-2f);
  c = fmaf(fmaf(c, square, -0.5f), square, 1.0f);
  const bool swapped = quadrant & 1;
  sine = __uint_as_float(__float_as_uint(swapped ? c : s) ^ (quadrant & 2) << 30);
  cosine = __uint_as_float(__float_as_uint(swapped ? s : c) ^ (quadrant + 1 & 2) << 30);
}

// box_muller of core/box_muller.h, to rounding. See Note [Normal numbers on the GPU].
__device__ inline NormalPair<float> box_muller_of(uint32_t x, uint32_t y) {
  const float u = fmaf(static_cast<float>(x), 0x1p-32f, 0x1p-33f);
  const float v = fmaf(static_cast<float>(y), 0x1p-32f * 6.2831855f, 0x1p-33f * 6.2831855f);
  float radius, sine, cosine;
  asm("sqrt.approx.ftz.f32 %0, %1;" : "=f"(radius) : "f"(minus_two_log(u)));
  sincos_of_turn(v, sine, cosine);
  return {sine * radius, cosine * radius};
}

// The same for numbers that are rounded to 16 bits.
__device__ inline NormalPair<float> coarse_box_muller_of(uint32_t x, uint32_t y) {
  const float u = fmaf(static_cast<float>(x), 0x1p-32f, 0x1p-33f), from_one = 1.0f - u;
  // The angle or that less a turn.
  const float v = fmaf(static_cast<float>(static_cast<int>(y)), 0x1p-32f * 6.2831855f, 0x1p-33f * 6.2831855f);
  float log2, radius, sine, cosine;
  asm("lg2.approx.ftz.f32 %0, %1;" : "=f"(log2) : "f"(u));
  const float square = from_one < 0x1p-7f ? from_one * (from_one + 2.0f) : log2 * (-2 * 0.693147181f);
  asm("sqrt.approx.ftz.f32 %0, %1;" : "=f"(radius) : "f"(square));
  asm("sin.approx.ftz.f32 %0, %1;" : "=f"(sine) : "f"(v));
  asm("cos.approx.ftz.f32 %0, %1;" : "=f"(cosine) : "f"(v));
  return {sine * radius, cosine * radius};
}

}  // namespace rush::cuda
