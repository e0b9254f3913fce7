#include "core/half.h"

#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <unordered_set>

namespace {

using rush::BFloat16;
using rush::Half;

static_assert(sizeof(Half) == 2 && sizeof(BFloat16) == 2);
static_assert(std::is_trivial_v<Half> && std::is_trivial_v<BFloat16>);

// Conversions and arithmetic work at compile time.
static_assert(Half(1.5f) + Half(0.25f) == 1.75f);
static_assert(BFloat16(-2) * BFloat16(3) == -6);

// Two of a kind stay narrow, integers do not widen, floats do.
static_assert(std::is_same_v<decltype(Half() + Half()), Half>);
static_assert(std::is_same_v<decltype(2 * BFloat16()), BFloat16>);
static_assert(std::is_same_v<decltype(Half() / 2), Half>);
static_assert(std::is_same_v<decltype(Half() - 1.0f), float>);
static_assert(std::is_same_v<decltype(1.0 - BFloat16()), double>);
static_assert(std::is_same_v<decltype(Half() + BFloat16()), float>);

/// The definition: sign, exponent and fraction bits of an IEEE format, evaluated in double. The independent reference.
double value_of_bits(uint16_t bits, int exponent_bits) {
  const int fraction_bits = 15 - exponent_bits;
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const int exponent = (bits >> fraction_bits) & ((1 << exponent_bits) - 1);
  const int fraction = bits & ((1 << fraction_bits) - 1);
  const double sign = bits & 0x8000 ? -1.0 : 1.0;
  if (exponent == (1 << exponent_bits) - 1) return fraction ? std::nan("") : sign * HUGE_VAL;
  if (exponent == 0) return sign * std::ldexp(fraction, 1 - bias - fraction_bits);
  return sign * std::ldexp(fraction + (1 << fraction_bits), exponent - bias - fraction_bits);
}

template <class H>
constexpr int kExponentBits = std::is_same_v<H, Half> ? 5 : 8;

TEST_CASE_TEMPLATE("every 16-bit value means what its bits say and survives the way to float and back", H, Half,
                   BFloat16) {
  int mistakes = 0;
  for (uint32_t i = 0; i < 65536; ++i) {
    const auto bits = static_cast<uint16_t>(i);
    const float value = H::from_bits(bits);
    const double expected = value_of_bits(bits, kExponentBits<H>);
    if (std::isnan(expected)) {
      mistakes += !std::isnan(value) || !std::isnan(static_cast<float>(H(value)));
    } else {
      mistakes += value != expected || std::signbit(value) != std::signbit(expected) || H(value).bits != bits;
    }
  }
  CHECK(mistakes == 0);
}

// Between neighbours a < b there is one float m half-way. It goes to the even one, its own neighbours to the nearer.
TEST_CASE_TEMPLATE("conversion from float rounds to nearest, ties to even", H, Half, BFloat16) {
  const uint16_t infinity = std::numeric_limits<H>::infinity().bits;
  int mistakes = 0;
  for (uint16_t a = 0; a < infinity; ++a) {
    const uint16_t b = a + 1;
    // The step above the largest finite value leads to where the next value would be, not to infinity.
    const double low = value_of_bits(a, kExponentBits<H>);
    const double step =
        b == infinity ? low - value_of_bits(a - 1, kExponentBits<H>) : value_of_bits(b, kExponentBits<H>) - low;
    const auto middle = static_cast<float>(low + step / 2);
    const float below = std::nextafter(middle, 0.0f);
    const float above = std::nextafter(middle, HUGE_VALF);
    const uint16_t even = a % 2 == 0 ? a : b;
    mistakes += H(middle).bits != even || H(below).bits != a || H(above).bits != b;
    mistakes += H(-middle).bits != (even | 0x8000) || H(-below).bits != (a | 0x8000) || H(-above).bits != (b | 0x8000);
  }
  CHECK(mistakes == 0);
}

TEST_CASE("what lies beyond the range of Half becomes zero or infinity, and a NaN stays one") {
  CHECK(Half(0x1p-25f).bits == 0);
  CHECK(Half(std::numeric_limits<float>::denorm_min()).bits == 0);
  CHECK(Half(-0.0f).bits == 0x8000);
  CHECK(Half(65519.996f).bits == 0x7bff);
  CHECK(Half(65520.0f).bits == 0x7c00);
  CHECK(Half(-std::numeric_limits<float>::max()).bits == 0xfc00);
  CHECK(BFloat16(std::numeric_limits<float>::max()).bits == 0x7f80);
  // A signalling NaN whose payload lies in the bits that are cut off.
  const auto nan = std::bit_cast<float>(0xff800001u);
  CHECK(std::isnan(static_cast<float>(Half(nan))));
  CHECK(std::isnan(static_cast<float>(BFloat16(nan))));
  CHECK((Half(nan).bits & 0x8000) != 0);
}

#ifdef RUSH_HAS_F16C
TEST_CASE("F16C and the portable conversion agree bit for bit") {
  namespace detail = rush::detail;
  uint64_t mistakes = 0;
  for (uint32_t i = 0; i < 65536; ++i) {
    const auto bits = static_cast<uint16_t>(i);
    mistakes += std::bit_cast<uint32_t>(detail::portable_float_from_half(bits)) !=
                std::bit_cast<uint32_t>(detail::f16c_float_from_half(bits));
  }
  // A prime step visits every exponent, both signs, NaN, and every pattern of the low bits that decide the rounding.
  // All 2^32 floats agree as well, which takes 20 s.
  constexpr uint64_t kStep = 127;
  for (uint64_t i = 0; i < uint64_t{1} << 32; i += kStep) {
    const auto value = std::bit_cast<float>(static_cast<uint32_t>(i));
    mistakes += detail::portable_half_from_float(value) != detail::f16c_half_from_float(value);
  }
  CHECK(mistakes == 0);
}
#endif

TEST_CASE("arithmetic computes in float and rounds once") {
  Half a = 2048.0f;
  CHECK(a + Half(1) == 2048);  // a tie, to even
  a += 1.5f;                   // nearer to 2050 than to 2048
  CHECK(a == 2050);
  CHECK(Half(1) + 65504 == 65504);
  CHECK(Half(60000.0f) * Half(2) == std::numeric_limits<float>::infinity());
  CHECK(std::isnan(static_cast<float>(BFloat16(0) / BFloat16(0))));
  CHECK((-Half(0.0f)).bits == 0x8000);
  BFloat16 b = 256.0f;
  b -= 0.6f;  // 255.4 rounds to 255; 0.6 and 255.4 are no BFloat16
  CHECK(b == 255);
}

TEST_CASE_TEMPLATE("comparisons are those of the values", H, Half, BFloat16) {
  const H nan = std::numeric_limits<H>::quiet_NaN();
  CHECK(H(1) < H(2));
  CHECK(H(-1) < H(-0.5f));
  CHECK(H(0.0f) == H(-0.0f));
  CHECK(nan != nan);
  CHECK_FALSE(nan < H(1));
  CHECK(H(2) >= 2);
  CHECK(H(0.5f) == 0.5);
  CHECK(std::hash<H>()(H(0.0f)) == std::hash<H>()(H(-0.0f)));
  CHECK(std::unordered_set<H>{H(1), H(2), H(1)}.size() == 2);
}

TEST_CASE_TEMPLATE("numeric_limits follow from the format", H, Half, BFloat16) {
  using Limits = std::numeric_limits<H>;
  CHECK(Limits::digits == 16 - kExponentBits<H>);
  CHECK(Limits::epsilon() == std::ldexp(1.0f, 1 - Limits::digits));
  CHECK(H(1.0f + Limits::epsilon()) != 1.0f);
  CHECK(H(1.0f + Limits::epsilon() / 2.0f) == 1.0f);
  CHECK(Limits::min() == std::ldexp(1.0f, Limits::min_exponent - 1));
  CHECK(Limits::max() == std::ldexp(2.0f - Limits::epsilon(), Limits::max_exponent - 1));
  CHECK(Limits::lowest() == -Limits::max());
  CHECK(Limits::denorm_min() == Limits::min() * Limits::epsilon());
  CHECK(std::isinf(static_cast<float>(Limits::infinity())));
  CHECK(std::isnan(static_cast<float>(Limits::quiet_NaN())));
  CHECK(std::isnan(static_cast<float>(Limits::signaling_NaN())));
  CHECK(Limits::round_error() == 0.5f);
  CHECK(Limits::min_exponent10 == std::ceil(std::log10(static_cast<float>(Limits::min()))));
  CHECK(Limits::max_exponent10 == std::floor(std::log10(static_cast<float>(Limits::max()))));
  CHECK(Limits::digits10 == std::floor((Limits::digits - 1) * std::log10(2.0)));
  CHECK(Limits::max_digits10 == std::ceil(Limits::digits * std::log10(2.0) + 1));
}

}  // namespace
