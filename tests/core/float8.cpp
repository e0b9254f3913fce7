#include "core/float8.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <type_traits>

#include "core/half.h"

namespace {

using rush::BFloat16;
using rush::Float8_e4m3fn;
using rush::Float8_e5m2;

static_assert(sizeof(Float8_e4m3fn) == 1 && sizeof(Float8_e5m2) == 1);
static_assert(std::is_trivial_v<Float8_e4m3fn> && std::is_trivial_v<Float8_e5m2>);

// Conversions work at compile time.
static_assert(Float8_e4m3fn(1.5f) == 1.5f && Float8_e4m3fn(0x1p-9f).bits == 1);
static_assert(Float8_e5m2(-1.75f) == -1.75f && Float8_e5m2(1e9f).bits == 0x7c);

template <class T>
constexpr bool kIsE4m3fn = std::is_same_v<T, Float8_e4m3fn>;

// The definition: sign, exponent and fraction bits, evaluated in double. The independent reference. Where the format
// has no finite number, `beyond` gives the one that would follow.
template <class T>
double value_of_code(int bits, bool beyond = false) {
  constexpr int kFraction = kIsE4m3fn<T> ? 3 : 2, kBias = kIsE4m3fn<T> ? 7 : 15;
  const int magnitude = bits & 0x7f, exponent = magnitude >> kFraction, fraction = magnitude & ((1 << kFraction) - 1);
  const double sign = bits & 0x80 ? -1.0 : 1.0;
  if (kIsE4m3fn<T> && magnitude == 0x7f && !beyond) return std::nan("");
  if (!kIsE4m3fn<T> && magnitude > 0x7c) return std::nan("");
  if (!kIsE4m3fn<T> && magnitude == 0x7c && !beyond) return sign * HUGE_VAL;
  if (exponent == 0) return sign * std::ldexp(fraction, 1 - kBias - kFraction);
  return sign * std::ldexp(fraction + (1 << kFraction), exponent - kBias - kFraction);
}

// The code of the nearest number, by search; of two that are equally near, the even one.
template <class T>
int nearest(float value) {
  const int sign = std::signbit(value) ? 0x80 : 0;
  constexpr int kBeyond = kIsE4m3fn<T> ? 0x7f : 0x7c;  // NaN; infinity
  if (std::isnan(value)) return sign | 0x7f;
  const double magnitude = std::abs(static_cast<double>(value));
  if (magnitude >= value_of_code<T>(kBeyond, true)) return sign | kBeyond;
  int best = 0;
  for (int code = 0; code <= kBeyond; ++code) {
    const double distance = std::abs(value_of_code<T>(code, true) - magnitude);
    const double least = std::abs(value_of_code<T>(best, true) - magnitude);
    if (distance < least || (distance == least && code % 2 == 0)) best = code;
  }
  return sign | best;
}

TEST_CASE_TEMPLATE("each of the 256 codes means what its bits say and survives the way to float and back", T,
                   Float8_e4m3fn, Float8_e5m2) {
  int mistakes = 0, nans = 0;
  for (int code = 0; code < 256; ++code) {
    const float value = T::from_bits(static_cast<uint8_t>(code));
    const double expected = value_of_code<T>(code);
    if (std::isnan(expected)) {
      ++nans;
      mistakes += !std::isnan(value) || std::signbit(value) != (code >= 0x80) || T(value).bits != (code | 0x7f);
    } else {
      mistakes += value != expected || std::signbit(value) != std::signbit(expected) || T(value).bits != code;
    }
  }
  CHECK(mistakes == 0);
  CHECK(nans == (kIsE4m3fn<T> ? 2 : 6));
}

TEST_CASE_TEMPLATE("conversion rounds to the nearest number: every bfloat16, and what lies around every tie", T,
                   Float8_e4m3fn, Float8_e5m2) {
  int mistakes = 0;
  for (uint32_t i = 0; i < 65536; ++i) {
    const float value = BFloat16::from_bits(static_cast<uint16_t>(i));
    mistakes += T(value).bits != nearest<T>(value);
  }
  for (int code = 0; code < (kIsE4m3fn<T> ? 0x7f : 0x7c); ++code) {
    const auto tie =
        static_cast<float>((value_of_code<T>(code, true) + value_of_code<T>(code + 1, true)) / 2);  // exact in a float
    for (const float value : {std::nextafter(tie, 0.0f), tie, std::nextafter(tie, HUGE_VALF)}) {
      mistakes += T(value).bits != nearest<T>(value) || T(-value).bits != nearest<T>(-value);
    }
  }
  CHECK(mistakes == 0);
}

// As PyTorch 2.11 converts: the bits of the first non-negative bfloat16 that has each code, of all 32768; 0x8000 where
// none has it. The map is monotone, so these 128 numbers say what every one becomes.
constexpr uint16_t kFirstE4m3fn[128] = {
    0x0000, 0x3a81, 0x3b40, 0x3ba1, 0x3be0, 0x3c11, 0x3c30, 0x3c51, 0x3c70, 0x3c89, 0x3c98, 0x3ca9, 0x3cb8,
    0x3cc9, 0x3cd8, 0x3ce9, 0x3cf8, 0x3d09, 0x3d18, 0x3d29, 0x3d38, 0x3d49, 0x3d58, 0x3d69, 0x3d78, 0x3d89,
    0x3d98, 0x3da9, 0x3db8, 0x3dc9, 0x3dd8, 0x3de9, 0x3df8, 0x3e09, 0x3e18, 0x3e29, 0x3e38, 0x3e49, 0x3e58,
    0x3e69, 0x3e78, 0x3e89, 0x3e98, 0x3ea9, 0x3eb8, 0x3ec9, 0x3ed8, 0x3ee9, 0x3ef8, 0x3f09, 0x3f18, 0x3f29,
    0x3f38, 0x3f49, 0x3f58, 0x3f69, 0x3f78, 0x3f89, 0x3f98, 0x3fa9, 0x3fb8, 0x3fc9, 0x3fd8, 0x3fe9, 0x3ff8,
    0x4009, 0x4018, 0x4029, 0x4038, 0x4049, 0x4058, 0x4069, 0x4078, 0x4089, 0x4098, 0x40a9, 0x40b8, 0x40c9,
    0x40d8, 0x40e9, 0x40f8, 0x4109, 0x4118, 0x4129, 0x4138, 0x4149, 0x4158, 0x4169, 0x4178, 0x4189, 0x4198,
    0x41a9, 0x41b8, 0x41c9, 0x41d8, 0x41e9, 0x41f8, 0x4209, 0x4218, 0x4229, 0x4238, 0x4249, 0x4258, 0x4269,
    0x4278, 0x4289, 0x4298, 0x42a9, 0x42b8, 0x42c9, 0x42d8, 0x42e9, 0x42f8, 0x4309, 0x4318, 0x4329, 0x4338,
    0x4349, 0x4358, 0x4369, 0x4378, 0x4389, 0x4398, 0x43a9, 0x43b8, 0x43c9, 0x43d8, 0x43e9};
constexpr uint16_t kFirstE5m2[128] = {
    0x0000, 0x3701, 0x37c0, 0x3821, 0x3860, 0x3891, 0x38b0, 0x38d1, 0x38f0, 0x3911, 0x3930, 0x3951, 0x3970,
    0x3991, 0x39b0, 0x39d1, 0x39f0, 0x3a11, 0x3a30, 0x3a51, 0x3a70, 0x3a91, 0x3ab0, 0x3ad1, 0x3af0, 0x3b11,
    0x3b30, 0x3b51, 0x3b70, 0x3b91, 0x3bb0, 0x3bd1, 0x3bf0, 0x3c11, 0x3c30, 0x3c51, 0x3c70, 0x3c91, 0x3cb0,
    0x3cd1, 0x3cf0, 0x3d11, 0x3d30, 0x3d51, 0x3d70, 0x3d91, 0x3db0, 0x3dd1, 0x3df0, 0x3e11, 0x3e30, 0x3e51,
    0x3e70, 0x3e91, 0x3eb0, 0x3ed1, 0x3ef0, 0x3f11, 0x3f30, 0x3f51, 0x3f70, 0x3f91, 0x3fb0, 0x3fd1, 0x3ff0,
    0x4011, 0x4030, 0x4051, 0x4070, 0x4091, 0x40b0, 0x40d1, 0x40f0, 0x4111, 0x4130, 0x4151, 0x4170, 0x4191,
    0x41b0, 0x41d1, 0x41f0, 0x4211, 0x4230, 0x4251, 0x4270, 0x4291, 0x42b0, 0x42d1, 0x42f0, 0x4311, 0x4330,
    0x4351, 0x4370, 0x4391, 0x43b0, 0x43d1, 0x43f0, 0x4411, 0x4430, 0x4451, 0x4470, 0x4491, 0x44b0, 0x44d1,
    0x44f0, 0x4511, 0x4530, 0x4551, 0x4570, 0x4591, 0x45b0, 0x45d1, 0x45f0, 0x4611, 0x4630, 0x4651, 0x4670,
    0x4691, 0x46b0, 0x46d1, 0x46f0, 0x4711, 0x4730, 0x4751, 0x4770, 0x8000, 0x8000, 0x7f81};

TEST_CASE_TEMPLATE("all 65536 bfloat16 convert as in PyTorch", T, Float8_e4m3fn, Float8_e5m2) {
  const auto& first = kIsE4m3fn<T> ? kFirstE4m3fn : kFirstE5m2;
  int code = 0, mistakes = 0;
  for (int i = 0; i < 0x8000; ++i) {
    if (const auto* next = std::find(first, first + 128, i); next != first + 128) code = static_cast<int>(next - first);
    const auto bits = static_cast<uint16_t>(i);
    mistakes += T(BFloat16::from_bits(bits)).bits != code;
    mistakes += T(BFloat16::from_bits(static_cast<uint16_t>(bits | 0x8000))).bits != (code | 0x80);
  }
  CHECK(mistakes == 0);
}

TEST_CASE("what is too large becomes NaN in e4m3fn and infinity in e5m2") {
  CHECK(Float8_e4m3fn(464.0f) == 448.0f);
  CHECK(Float8_e4m3fn(std::nextafter(464.0f, 500.0f)).bits == 0x7f);
  CHECK(Float8_e4m3fn(-HUGE_VALF).bits == 0xff);
  CHECK(Float8_e5m2(std::nextafter(61440.0f, 0.0f)) == 57344.0f);
  CHECK(Float8_e5m2(61440.0f) == HUGE_VALF);
  CHECK(Float8_e5m2(-HUGE_VALF).bits == 0xfc);
  CHECK(Float8_e4m3fn(-0.0f).bits == 0x80);
  CHECK(Float8_e5m2(0x1p-149f).bits == 0);
  // The bits of NaN as a float are PyTorch's, too.
  CHECK(std::bit_cast<uint32_t>(static_cast<float>(Float8_e4m3fn::from_bits(0xff))) == 0xfff00000);
  CHECK(std::bit_cast<uint32_t>(static_cast<float>(Float8_e5m2::from_bits(0x7d))) == 0x7fe00000);
  CHECK(std::bit_cast<uint32_t>(static_cast<float>(Float8_e5m2::from_bits(0xfe))) == 0xffc00000);
}

}  // namespace
