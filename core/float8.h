// The 8-bit floating types, by their PyTorch names: e4m3fn has 1 sign, 4 exponent and 3 fraction bits, no infinity, and
// NaN only where all other bits are set; e5m2 (1, 5, 2) is the upper half of a binary16. They only store numbers, so
// they have conversions and no operators. Conversions to them round to nearest, ties to even; what is too large becomes
// NaN in e4m3fn and infinity in e5m2. See Micikevicius et al., FP8 formats for deep learning (arXiv:2209.05433).
#pragma once

#include <cstdint>

#include "core/half.h"
#include "core/macros.h"

namespace rush {

namespace detail {

// The exponent and fraction bits of the number with `fraction_bits` and `bias` that is nearest to a finite float, which
// is given by its bits without the sign. The caller deals with numbers that are too large.
RUSH_HD constexpr uint32_t narrowed(uint32_t magnitude, int fraction_bits, int bias) {
  const auto smallest_normal = static_cast<uint32_t>(128 - bias) << 23;
  if (magnitude < smallest_normal) {
    // As in portable_half_from_float: the result counts units of 2^(1 - bias - fraction_bits).
    const uint32_t significand = (magnitude & 0x7fffff) | 0x800000;
    const uint32_t shift = static_cast<uint32_t>(151 - bias - fraction_bits) - (magnitude >> 23);
    if (shift > 24) return 0;  // less than half a unit
    const uint32_t odd = (significand >> shift) & 1;
    return (significand + (1u << (shift - 1)) - 1 + odd) >> shift;
  }
  // A carry out of the fraction moves into the exponent, which is the right answer.
  const int shift = 23 - fraction_bits;
  const uint32_t odd = (magnitude >> shift) & 1;
  return (magnitude + (1u << (shift - 1)) - 1 + odd - (static_cast<uint32_t>(127 - bias) << 23)) >> shift;
}

RUSH_HD constexpr uint8_t float8_e4m3fn_from_float(float value) {
  constexpr uint32_t kOverflow = 0x43f00000;  // 480, where the next number would be; 464 to 480 are rounded to it
  const uint32_t bits = float_bits(value), magnitude = bits & 0x7fffffff;
  return static_cast<uint8_t>((bits >> 24 & 0x80) | (magnitude >= kOverflow ? 0x7f : narrowed(magnitude, 3, 7)));
}

RUSH_HD constexpr float float_from_float8_e4m3fn(uint8_t bits) {
  const uint32_t sign = (bits & 0x80u) << 24, magnitude = bits & 0x7f;
  if (magnitude == 0x7f) return bits_float(sign | 0x7ff00000);
  if (magnitude < 8) return bits_float(sign | float_bits(static_cast<float>(magnitude) * 0x1p-9f));
  return bits_float(sign | ((magnitude << 20) + ((127 - 7) << 23)));
}

RUSH_HD constexpr uint8_t float8_e5m2_from_float(float value) {
  constexpr uint32_t kInfinity = 0x7f800000, kOverflow = 0x47800000;  // 65536; 61440 to 65536 are rounded to infinity
  const uint32_t bits = float_bits(value), magnitude = bits & 0x7fffffff;
  const uint32_t narrow = magnitude > kInfinity ? 0x7f : magnitude >= kOverflow ? 0x7c : narrowed(magnitude, 2, 15);
  return static_cast<uint8_t>((bits >> 24 & 0x80) | narrow);
}

}  // namespace detail

struct Float8_e4m3fn {  // the largest is 448
  uint8_t bits;

  Float8_e4m3fn() = default;  // indeterminate, as float is
  RUSH_HD constexpr Float8_e4m3fn(float value) : bits(detail::float8_e4m3fn_from_float(value)) {}
  RUSH_HD constexpr operator float() const { return detail::float_from_float8_e4m3fn(bits); }  // exact

  RUSH_HD static constexpr Float8_e4m3fn from_bits(uint8_t bits) {  // the number that they encode
    Float8_e4m3fn value{};
    value.bits = bits;
    return value;
  }
};

struct Float8_e5m2 {  // the largest is 57344
  uint8_t bits;

  Float8_e5m2() = default;  // indeterminate, as float is
  RUSH_HD constexpr Float8_e5m2(float value) : bits(detail::float8_e5m2_from_float(value)) {}
  // Exact.
  RUSH_HD constexpr operator float() const { return detail::float_from_half(static_cast<uint16_t>(bits << 8)); }

  RUSH_HD static constexpr Float8_e5m2 from_bits(uint8_t bits) {  // the number that they encode
    Float8_e5m2 value{};
    value.bits = bits;
    return value;
  }
};

}  // namespace rush
