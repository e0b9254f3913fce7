// exp in plain arithmetic, which the compiler vectorises wherever it is inlined into a loop. libm's would be called
// once for each element.
#pragma once
#include <bit>
#include <cmath>
#include <cstdint>

#include "core/macros.h"

namespace rush::cpu {

// e^x to within 1.5 units in the last place, infinities and NaN as libm's. x = n ln 2 + r with |r| <= ln 2 / 2, e^r by
// the polynomial of Cephes' expf (Moshier, netlib.org/cephes), and 2^n in two factors so that subnormal results come
// out right.
RUSH_ALWAYS_INLINE float vector_exp(float x) {
  x = x > 89.f ? 89.f : x;
  x = x < -104.f ? -104.f : x;
  constexpr float kShift = 12582912.f;  // 1.5 * 2^23: adding it rounds to an integer, left in the low bits
  const float shifted = x * 1.44269504088896341f + kShift;
  const float n = shifted - kShift;
  float r = x - n * 0.693359375f;
  r = r - n * -2.12194440e-4f;
  float p = 1.9875691500e-4f;
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = p * (r * r) + r + 1.f;
  const int32_t power = static_cast<int32_t>(std::bit_cast<uint32_t>(shifted) - std::bit_cast<uint32_t>(kShift));
  const int32_t half = power >> 1;
  const auto two_to = [](int32_t e) { return std::bit_cast<float>(static_cast<uint32_t>(e + 127) << 23); };
  return p * two_to(half) * two_to(power - half);
}

inline double vector_exp(double x) { return std::exp(x); }

}  // namespace rush::cpu
