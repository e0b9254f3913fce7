// The 16-bit floating types: Half is IEEE binary16 (1 sign, 5 exponent, 10 fraction bits), BFloat16 the upper half of a
// binary32 (1, 8, 7). Both store 16 bits and compute in float; conversions to them round to nearest, ties to even.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string_view>  // the primary template of std::hash, without <functional>

#include "core/macros.h"

namespace rush {

namespace detail {
RUSH_HD constexpr uint16_t half_from_float(float value);
RUSH_HD constexpr float float_from_half(uint16_t bits);
RUSH_HD constexpr uint16_t bfloat16_from_float(float value);
RUSH_HD constexpr float float_from_bfloat16(uint16_t bits);
}  // namespace detail

struct Half {  // IEEE binary16
  uint16_t bits;

  Half() = default;  // indeterminate, as float is
  RUSH_HD constexpr Half(float value) : bits(detail::half_from_float(value)) {}
  RUSH_HD constexpr operator float() const { return detail::float_from_half(bits); }  // exact

  RUSH_HD static constexpr Half from_bits(uint16_t bits) {  // the number that they encode
    Half half{};
    half.bits = bits;
    return half;
  }
};

struct BFloat16 {  // the upper 16 bits of a float
  uint16_t bits;

  BFloat16() = default;  // indeterminate, as float is
  RUSH_HD constexpr BFloat16(float value) : bits(detail::bfloat16_from_float(value)) {}
  RUSH_HD constexpr operator float() const { return detail::float_from_bfloat16(bits); }  // exact

  RUSH_HD static constexpr BFloat16 from_bits(uint16_t bits) {  // the number that they encode
    BFloat16 value{};
    value.bits = bits;
    return value;
  }
};

template <class T>
concept ReducedFloat = std::same_as<T, Half> || std::same_as<T, BFloat16>;

// Two of the same type give that type; with an integer, too (as in type promotion: an integer does not widen a float);
// with a float or double, that wider type. Comparisons need no operators: the conversion to float supplies them.
#define RUSH_REDUCED_FLOAT_OPERATOR(op)                         \
  template <ReducedFloat H>                                     \
  RUSH_HD constexpr H operator op(H a, H b) {                   \
    return static_cast<float>(a) op static_cast<float>(b);      \
  }                                                             \
  template <ReducedFloat H, std::integral I>                    \
  RUSH_HD constexpr H operator op(H a, I b) {                   \
    return static_cast<float>(a) op static_cast<float>(b);      \
  }                                                             \
  template <std::integral I, ReducedFloat H>                    \
  RUSH_HD constexpr H operator op(I a, H b) {                   \
    return static_cast<float>(a) op static_cast<float>(b);      \
  }                                                             \
  template <ReducedFloat H, std::floating_point F>              \
  RUSH_HD constexpr F operator op(H a, F b) {                   \
    return static_cast<float>(a) op b;                          \
  }                                                             \
  template <std::floating_point F, ReducedFloat H>              \
  RUSH_HD constexpr F operator op(F a, H b) {                   \
    return a op static_cast<float>(b);                          \
  }                                                             \
  /* `b` stays a float until the one rounding of the result. */ \
  template <ReducedFloat H>                                     \
  RUSH_HD constexpr H& operator op##=(H& a, float b) {          \
    return a = static_cast<float>(a) op b;                      \
  }

RUSH_REDUCED_FLOAT_OPERATOR(+)
RUSH_REDUCED_FLOAT_OPERATOR(-)
RUSH_REDUCED_FLOAT_OPERATOR(*)
RUSH_REDUCED_FLOAT_OPERATOR(/)
#undef RUSH_REDUCED_FLOAT_OPERATOR

template <ReducedFloat H>
RUSH_HD constexpr H operator-(H a) {
  return H::from_bits(a.bits ^ 0x8000);
}

namespace detail {

// Built-ins rather than <bit> and <type_traits>: nvcc accepts them in device code without further flags.
RUSH_HD constexpr uint32_t float_bits(float value) { return __builtin_bit_cast(uint32_t, value); }
RUSH_HD constexpr float bits_float(uint32_t bits) { return __builtin_bit_cast(float, bits); }

// In integers only, and therefore the same under every rounding mode and with flush-to-zero on. A NaN keeps its sign
// and the upper bits of its payload and becomes quiet, as F16C does it.
RUSH_HD constexpr uint16_t portable_half_from_float(float value) {
  constexpr uint32_t kInfinity = 0x7f800000;
  constexpr uint32_t kOverflow = 0x477ff000;        // 65520 = 65504 + half of its last place: rounds to infinity
  constexpr uint32_t kSmallestNormal = 0x38800000;  // 2^-14
  constexpr uint32_t kUnderflow = 0x33000000;       // 2^-25, half of the smallest subnormal: ties to even, that is zero
  const uint32_t bits = float_bits(value);
  const uint32_t sign = (bits >> 16) & 0x8000;
  const uint32_t magnitude = bits & 0x7fffffff;

  if (magnitude > kInfinity) return sign | 0x7e00 | ((magnitude >> 13) & 0x3ff);
  if (magnitude >= kOverflow) return sign | 0x7c00;
  if (magnitude <= kUnderflow) return sign;

  if (magnitude < kSmallestNormal) {
    // The result counts units of 2^-24. value = significand * 2^(exponent - 150) = significand * 2^-shift units.
    const uint32_t significand = (magnitude & 0x7fffff) | 0x800000;
    const uint32_t shift = 126 - (magnitude >> 23);
    const uint32_t odd = (significand >> shift) & 1;
    return sign | ((significand + (1u << (shift - 1)) - 1 + odd) >> shift);
  }
  // A carry out of the fraction moves into the exponent, which is the right answer.
  const uint32_t odd = (magnitude >> 13) & 1;
  return sign | ((magnitude + 0xfff + odd - ((127u - 15) << 23)) >> 13);
}

RUSH_HD constexpr float portable_float_from_half(uint16_t bits) {
  const uint32_t sign = (bits & 0x8000u) << 16;
  const uint32_t exponent = (bits >> 10) & 0x1f;
  const uint32_t fraction = bits & 0x3ff;

  if (exponent == 0x1f) {
    const uint32_t quiet = fraction != 0 ? 0x400000 : 0;
    return bits_float(sign | 0x7f800000 | quiet | (fraction << 13));
  }
  if (exponent == 0) return bits_float(sign | float_bits(static_cast<float>(fraction) * 0x1p-24f));
  return bits_float(sign | ((exponent + (127 - 15)) << 23) | (fraction << 13));
}

RUSH_HD constexpr uint16_t portable_bfloat16_from_float(float value) {
  const uint32_t bits = float_bits(value);
  if ((bits & 0x7fffffff) > 0x7f800000) return (bits >> 16) | 0x40;
  const uint32_t odd = (bits >> 16) & 1;
  return (bits + 0x7fff + odd) >> 16;
}

// F16C through the compiler's built-ins: <immintrin.h> takes longer to parse than all of this header's users' own code.
#if defined(__F16C__) && !defined(RUSH_DEVICE_COMPILER)
#define RUSH_HAS_F16C 1

inline uint16_t f16c_half_from_float(float value) {
  using Float4 __attribute__((vector_size(16))) = float;
  constexpr int kNearestEven = 0;
  return static_cast<uint16_t>(__builtin_ia32_vcvtps2ph(Float4{value, 0, 0, 0}, kNearestEven)[0]);
}

inline float f16c_float_from_half(uint16_t bits) {
#ifdef __clang__  // whose version 22 has no built-in for this; GCC 11 has no _Float16
  return static_cast<float>(__builtin_bit_cast(_Float16, bits));
#else
  using Short8 __attribute__((vector_size(16))) = short;
  return __builtin_ia32_vcvtph2ps(Short8{static_cast<short>(bits), 0, 0, 0, 0, 0, 0, 0})[0];
#endif
}
#endif

RUSH_HD constexpr uint16_t half_from_float(float value) {
#if defined(RUSH_DEVICE_CODE)
  if (!__builtin_is_constant_evaluated()) return device_code::half_from_float(value);
#elif defined(RUSH_HAS_F16C)
  if (!__builtin_is_constant_evaluated()) return f16c_half_from_float(value);
#endif
  return portable_half_from_float(value);
}

RUSH_HD constexpr float float_from_half(uint16_t bits) {
#if defined(RUSH_DEVICE_CODE)
  if (!__builtin_is_constant_evaluated()) return device_code::float_from_half(bits);
#elif defined(RUSH_HAS_F16C)
  if (!__builtin_is_constant_evaluated()) return f16c_float_from_half(bits);
#endif
  return portable_float_from_half(bits);
}

RUSH_HD constexpr uint16_t bfloat16_from_float(float value) {
#if defined(RUSH_DEVICE_CODE)
  if (!__builtin_is_constant_evaluated()) return device_code::bfloat16_from_float(value);
#endif
  return portable_bfloat16_from_float(value);
}

RUSH_HD constexpr float float_from_bfloat16(uint16_t bits) { return bits_float(static_cast<uint32_t>(bits) << 16); }

// What Half and BFloat16 share with each other in std::numeric_limits.
struct ReducedFloatLimits {
  static constexpr bool is_specialized = true;
  static constexpr bool is_signed = true;
  static constexpr bool is_integer = false;
  static constexpr bool is_exact = false;
  static constexpr bool has_infinity = true;
  static constexpr bool has_quiet_NaN = true;
  static constexpr bool has_signaling_NaN = true;
  static constexpr std::float_denorm_style has_denorm = std::denorm_present;
  static constexpr bool has_denorm_loss = false;
  static constexpr std::float_round_style round_style = std::round_to_nearest;
  static constexpr bool is_iec559 = true;
  static constexpr bool is_bounded = true;
  static constexpr bool is_modulo = false;
  static constexpr bool traps = false;
  static constexpr bool tinyness_before = false;
  static constexpr int radix = 2;
};

}  // namespace detail
}  // namespace rush

template <>
class std::numeric_limits<rush::Half> : public rush::detail::ReducedFloatLimits {
  using H = rush::Half;

 public:
  static constexpr int digits = 11;
  static constexpr int digits10 = 3;
  static constexpr int max_digits10 = 5;
  static constexpr int min_exponent = -13;
  static constexpr int min_exponent10 = -4;
  static constexpr int max_exponent = 16;
  static constexpr int max_exponent10 = 4;
  RUSH_HD static constexpr H min() noexcept { return H::from_bits(0x0400); }
  RUSH_HD static constexpr H max() noexcept { return H::from_bits(0x7bff); }  // 65504
  RUSH_HD static constexpr H lowest() noexcept { return H::from_bits(0xfbff); }
  RUSH_HD static constexpr H epsilon() noexcept { return H::from_bits(0x1400); }
  RUSH_HD static constexpr H round_error() noexcept { return H::from_bits(0x3800); }
  RUSH_HD static constexpr H infinity() noexcept { return H::from_bits(0x7c00); }
  RUSH_HD static constexpr H quiet_NaN() noexcept { return H::from_bits(0x7e00); }
  RUSH_HD static constexpr H signaling_NaN() noexcept { return H::from_bits(0x7d00); }
  RUSH_HD static constexpr H denorm_min() noexcept { return H::from_bits(0x0001); }
};

template <>
class std::numeric_limits<rush::BFloat16> : public rush::detail::ReducedFloatLimits {
  using B = rush::BFloat16;

 public:
  static constexpr int digits = 8;
  static constexpr int digits10 = 2;
  static constexpr int max_digits10 = 4;
  static constexpr int min_exponent = -125;
  static constexpr int min_exponent10 = -37;
  static constexpr int max_exponent = 128;
  static constexpr int max_exponent10 = 38;
  RUSH_HD static constexpr B min() noexcept { return B::from_bits(0x0080); }
  RUSH_HD static constexpr B max() noexcept { return B::from_bits(0x7f7f); }
  RUSH_HD static constexpr B lowest() noexcept { return B::from_bits(0xff7f); }
  RUSH_HD static constexpr B epsilon() noexcept { return B::from_bits(0x3c00); }
  RUSH_HD static constexpr B round_error() noexcept { return B::from_bits(0x3f00); }
  RUSH_HD static constexpr B infinity() noexcept { return B::from_bits(0x7f80); }
  RUSH_HD static constexpr B quiet_NaN() noexcept { return B::from_bits(0x7fc0); }
  RUSH_HD static constexpr B signaling_NaN() noexcept { return B::from_bits(0x7fa0); }
  RUSH_HD static constexpr B denorm_min() noexcept { return B::from_bits(0x0001); }
};

// Equal values hash equally, and -0 equals 0.
template <rush::ReducedFloat H>
struct std::hash<H> {
  std::size_t operator()(H value) const noexcept { return value == 0.0f ? 0 : value.bits; }
};
