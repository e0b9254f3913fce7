#include "core/philox.h"

#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <limits>

#include "core/box_muller.h"
#include "core/half.h"

namespace {

using rush::Philox4x32;
using rush::PhiloxBlock;
using rush::PhiloxState;

constexpr bool same(const PhiloxBlock& a, const PhiloxBlock& b) {
  return a[0] == b[0] && a[1] == b[1] && a[2] == b[2] && a[3] == b[3];
}

TEST_CASE("Philox4x32-10 gives the known answers of Random123") {
  static_assert(same(rush::philox4x32_10({{0, 0, 0, 0}}, 0, 0), {{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}}));
  constexpr uint32_t ones = 0xffffffff;
  CHECK(same(rush::philox4x32_10({{ones, ones, ones, ones}}, ones, ones),
             {{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}}));
  CHECK(same(rush::philox4x32_10({{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}}, 0xa4093822, 0x299f31d0),
             {{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}}));
}

// What cuRAND 10.4 returns after curand_init(seed, subsequence, offset) to three calls of curand, one of curand4 and
// one more of curand.
struct Walk {
  uint64_t seed, subsequence, offset;
  std::array<uint32_t, 8> words;
};

constexpr Walk kCurandWalks[] = {
    {67280421310721,
     0,
     0,
     {0x64a3e0f6, 0xd72e25ab, 0x0be1367b, 0x53eccf2d, 0x252d372a, 0xd70d580d, 0x15614e1c, 0x0dfa50b9}},
    {0x123456789abcdef0,
     5,
     0,
     {0xaead3422, 0x70bbc61f, 0xc86a83d9, 0x27d55add, 0x72f03c2c, 0xfa2f013f, 0x91ebb87f, 0xd6219286}},
    {0x123456789abcdef0,
     0x100000002,
     7,  // between blocks, and a subsequence of more than 32 bits
     {0x5c6114e5, 0xa06cecfb, 0x395e72b6, 0x519b6388, 0x7e0363dd, 0x9dca34c3, 0xc608d114, 0x5f3de19b}},
    {42,
     3,
     0x3fffffffe,  // a carry from the counter's first word into its second
     {0xae71f2dd, 0xa2b2408d, 0xffd1e8d7, 0x7a75e4f8, 0xc00c13a6, 0xcfe3d306, 0x6897ebc9, 0x59127219}},
    {42,
     0xffffffffffffffff,
     0x400000001,
     {0x3e879a19, 0xacd42e88, 0x89fb35a5, 0xf77d8ad6, 0xaaf7a5c9, 0x960414f6, 0x56656176, 0x37246f8b}},
};

TEST_CASE("a walk along the stream gives cuRAND's words") {
  for (const Walk& walk : kCurandWalks) {
    CAPTURE(walk.offset);
    Philox4x32 random(walk.seed, walk.subsequence, walk.offset);
    for (int i = 0; i < 3; ++i) CHECK(random() == walk.words[i]);
    CHECK(same(random.next4(), {{walk.words[3], walk.words[4], walk.words[5], walk.words[6]}}));
    CHECK(random() == walk.words[7]);
  }
}

// The words of element i, as Note [One random stream] promises them.
TEST_CASE("kernels read the words of a reservation from consecutive subsequences") {
  const PhiloxState reserved{99, 40};
  for (uint64_t w = 0; w < 23; ++w) {
    Philox4x32 random(99, w / 4, 40 + w % 4);
    CHECK(rush::philox_word(reserved, w) == random());
  }
  Philox4x32 second_block(99, 5, 44);
  CHECK(same(rush::philox_block(reserved, 5, 1), second_block.next4()));
  Philox4x32 own = rush::philox_sequence(reserved, 6);
  CHECK(own() == rush::philox_word(reserved, 24));
}

TEST_CASE("a captured state takes its seed and offset from the replay") {
  const uint64_t replay[2] = {7, 100};
  const PhiloxState captured{0, 8, replay};
  const PhiloxState known{7, 108};
  CHECK(same(rush::philox_block(captured, 3), rush::philox_block(known, 3)));
  CHECK(rush::philox_sequence(captured, 3)() == rush::philox_sequence(known, 3)());
}

TEST_CASE("uniform numbers are the lowest bits, and stay below 1") {
  CHECK(rush::uniform_real(0) == 0);
  CHECK(rush::uniform_real(0xff000001) == std::ldexp(1.0f, -24));
  CHECK(rush::uniform_real(0xffffffff) == 1 - std::ldexp(1.0f, -24));
  CHECK(rush::Half(rush::uniform_real<rush::Half>(0xffffffff)) == 1 - std::ldexp(1.0f, -11));
  CHECK(rush::BFloat16(rush::uniform_real<rush::BFloat16>(0xffffffff)) == 1 - std::ldexp(1.0f, -8));
  CHECK(rush::uniform_real_double(rush::join_words(0xffe00000, 1)) == std::ldexp(1.0, -53));
  CHECK(rush::uniform_real_double(~uint64_t{0}) == 1 - std::ldexp(1.0, -53));
}

// curand_normal4 and curand_normal2_double, compiled for the host, after curand_init(1234, 7, 8).
TEST_CASE("normal numbers are cuRAND's") {
  Philox4x32 random(1234, 7, 8);
  const PhiloxBlock block = random.next4();
  const auto first = rush::box_muller(block[0], block[1]);
  const auto second = rush::box_muller(block[2], block[3]);
  CHECK(first.sine == doctest::Approx(0.330825865).epsilon(1e-6));
  CHECK(first.cosine == doctest::Approx(0.193887711).epsilon(1e-6));
  CHECK(second.sine == doctest::Approx(0.457509607).epsilon(1e-6));
  CHECK(second.cosine == doctest::Approx(-0.378140092).epsilon(1e-6));
  const auto wide = rush::box_muller(random.next4());
  CHECK(wide.sine == doctest::Approx(-0.51648619084239522).epsilon(1e-14));
  CHECK(wide.cosine == doctest::Approx(0.67377786263549155).epsilon(1e-14));
}

TEST_CASE("the extreme words give finite normal numbers") {
  for (const uint32_t x : {0u, 0xffffffffu}) {
    for (const uint32_t y : {0u, 0xffffffffu}) {
      CHECK(std::isfinite(rush::box_muller(x, y).sine));
      CHECK(std::isfinite(rush::box_muller(x, y).cosine));
      CHECK(std::isfinite(rush::box_muller({{x, x, y, y}}).sine));
    }
  }
}

TEST_CASE("moments of a million draws") {
  constexpr int kBlocks = 250000;
  const PhiloxState reserved{2024, 0};
  double uniform_sum = 0, normal_sum = 0, square_sum = 0, fourth_sum = 0;
  for (int group = 0; group < kBlocks; ++group) {
    const PhiloxBlock block = rush::philox_block(reserved, group);
    for (int lane = 0; lane < 4; ++lane) uniform_sum += rush::uniform_real(block[lane]);
    for (int lane = 0; lane < 4; lane += 2) {
      const auto pair = rush::box_muller(block[lane], block[lane + 1]);
      for (const double x : {pair.sine, pair.cosine}) {
        normal_sum += x;
        square_sum += x * x;
        fourth_sum += x * x * x * x;
      }
    }
  }
  constexpr double n = 4.0 * kBlocks;
  // Five standard deviations of each mean: sqrt of 1/12, 1, 2 and 96 over n.
  CHECK(std::abs(uniform_sum / n - 0.5) < 5 * std::sqrt(1.0 / 12 / n));
  CHECK(std::abs(normal_sum / n) < 5 * std::sqrt(1 / n));
  CHECK(std::abs(square_sum / n - 1) < 5 * std::sqrt(2 / n));
  CHECK(std::abs(fourth_sum / n - 3) < 5 * std::sqrt(96 / n));
}

}  // namespace
