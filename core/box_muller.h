// Normal numbers from the words of Philox.
#pragma once

#include <cmath>
#include <cstdint>

#include "core/macros.h"
#include "core/philox.h"

namespace rush {

/// Two independent normal numbers with mean 0 and deviation 1.
template <class T>
struct NormalPair {
  T sine;
  T cosine;
};

/// Box and Muller's transform (Annals of Mathematical Statistics, 1958), with cuRAND's constants (curand_normal.h):
///   u = (x + 1/2) 2^-32 in (0, 1],  v = 2 pi (y + 1/2) 2^-32,  s = sqrt(-2 ln u),  (s sin v, s cos v)
/// cuRAND's own device code takes a fast sine and cosine; we take the accurate ones, so that CPU and GPU differ by the
/// last place of log, sin and cos only. The explicit fma keeps u and v the same whatever the compiler contracts.
RUSH_HD inline NormalPair<float> box_muller(uint32_t x, uint32_t y) {
  constexpr float kScale = 0x1p-32f;
  constexpr float kTwoPiScale = 0x1p-32f * 6.2831855f;
  const float u = std::fma(static_cast<float>(x), kScale, kScale / 2);
  const float v = std::fma(static_cast<float>(y), kTwoPiScale, kTwoPiScale / 2);
  const float s = std::sqrt(-2.0f * std::log(u));
#ifdef RUSH_DEVICE_CODE
  float sine, cosine;
  device_code::sine_cosine(v, sine, cosine);
  return {sine * s, cosine * s};
#else
  return {std::sin(v) * s, std::cos(v) * s};
#endif
}

/// The same in double precision from a whole block: x is 53 bits of words 0 and 1, y of words 2 and 3, and
///   u = (x + 1/2) 2^-53,  v = 2 pi (y + 1/2) 2^-53
/// where x = word0 xor (word1 << 21), as in cuRAND.
RUSH_HD inline NormalPair<double> box_muller(const PhiloxBlock& block) {
  constexpr double kScale = 0x1p-53;
  constexpr double kPi = 3.14159265358979323846;
  const uint64_t x = block[0] ^ static_cast<uint64_t>(block[1]) << 21;
  const uint64_t y = block[2] ^ static_cast<uint64_t>(block[3]) << 21;
  const double u = std::fma(static_cast<double>(x), kScale, kScale / 2);
  const double half_turns = std::fma(static_cast<double>(y), 2 * kScale, kScale);
  const double s = std::sqrt(-2.0 * std::log(u));
  return {std::sin(half_turns * kPi) * s, std::cos(half_turns * kPi) * s};
}

}  // namespace rush
