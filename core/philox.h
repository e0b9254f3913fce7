// Philox4x32-10, the counter-based random generator of Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy
// as 1, 2, 3" (SC 2011), and what turns its bits into uniform numbers; box_muller.h has normal ones. A block of four
// 32-bit words is a pure function of a 128-bit counter and a 64-bit key, so any processor can produce any part of a
// stream at once.
#pragma once

#include <cstdint>
#include <limits>
#include <type_traits>

#include "core/macros.h"

namespace rush {

// Note [One random stream]
// A seed names one stream of random words, the same on every device. It is a plane: 2^64 subsequences of 2^64 32-bit
// words each. cuRAND, at::Philox4_32 and we lay it over Philox's counter alike: words 2-3 of the counter hold the
// subsequence, words 0-1 the offset / 4 (a block yields four words), and the key is the seed. Offsets count words, as
// curand_init's do; at::Philox4_32 counts blocks.
//
// A generator's state is (seed, offset). A kernel first reserves a band of offsets (GeneratorImpl::reserve, core/
// generator.h), always in whole blocks, then reads it in one of two ways:
//
//   1. k words per element, k = 1/2, 1 or 2. Element i takes the words k*i, ..., k*i + k - 1, where word w is lane
//      w % 4 of subsequence w / 4 at the reserved offset. A GPU thread computes one block for 4 / k neighbouring
//      elements and nothing is wasted. One reservation of 4 words serves a tensor of any size:
//          uniform, bernoulli, dropout, integers below 2^32   k = 1: the element's word
//          normal, float                                      k = 1: elements 2j and 2j + 1 share box_muller(word 2j,
//                                                             word 2j + 1), the sine going to the even one
//          normal, Half and BFloat16                          k = 1/2: likewise by word j and its multiple, see Note
//                                                             [Normal numbers of 16 bits]
//          uniform, double, and integers of 64 bits           k = 2: the first word is the upper half
//          normal, double                                     k = 2: elements 2j and 2j + 1 share box_muller of the
//                                                             block j, the sine going to the even one
//      Other distributions of Half and BFloat16 draw as float does and then round or truncate, see uniform_real.
//   2. As many words as a rejection method asks for. Element i walks along subsequence i from the reserved offset on
//      (philox_sequence). The kernel reserves a bound on the words that one element takes and stops there.
//
// i counts elements in the logical (row-major) order of the output, so neither strides, the thread count, the vector
// width nor the launch shape change a result, and CPU and GPU read the same words.

/// Four words of the stream: one evaluation of Philox.
struct alignas(16) PhiloxBlock {
  uint32_t word[4];

  RUSH_HD constexpr uint32_t operator[](int lane) const { return word[lane]; }  // lane 0 to 3
};

/// The halves of a product.
struct WideProduct {
  uint32_t upper, lower;
};

RUSH_HD constexpr WideProduct multiply_wide(uint32_t a, uint32_t b) {  // 32 x 32 -> 64 bits
#ifdef RUSH_DEVICE_CODE
  if (!std::is_constant_evaluated()) {
    WideProduct product{};
    device_code::multiply_wide(a, b, product.upper, product.lower);
    return product;
  }
#endif
  const uint64_t product = uint64_t{a} * b;
  return {static_cast<uint32_t>(product >> 32), static_cast<uint32_t>(product)};
}

/// Philox4x32-10, counter and key in the words' order of the paper, least significant first.
RUSH_HD constexpr PhiloxBlock philox4x32_10(PhiloxBlock counter, uint32_t key0, uint32_t key1) {
  constexpr int kRounds = 10;
  constexpr uint32_t kMultiplier0 = 0xD2511F53;
  constexpr uint32_t kMultiplier1 = 0xCD9E8D57;
  constexpr uint32_t kWeyl0 = 0x9E3779B9;  // 2^32 times the golden ratio's fraction
  constexpr uint32_t kWeyl1 = 0xBB67AE85;  // 2^32 (sqrt(3) - 1)

  uint32_t c0 = counter.word[0], c1 = counter.word[1], c2 = counter.word[2], c3 = counter.word[3];
  for (int round = 0; round < kRounds; ++round) {
    const WideProduct product0 = multiply_wide(kMultiplier0, c0), product1 = multiply_wide(kMultiplier1, c2);
    c0 = product1.upper ^ c1 ^ key0;
    c1 = product1.lower;
    c2 = product0.upper ^ c3 ^ key1;
    c3 = product0.lower;
    key0 += kWeyl0;
    key1 += kWeyl1;
  }
  return {{c0, c1, c2, c3}};
}

/// A walk along the stream from (subsequence, offset) on: what curandStatePhilox4_32_10_t is after curand_init with the
/// same arguments. Running off the end of a subsequence continues in the next one.
class Philox4x32 {
 public:
  RUSH_HD constexpr explicit Philox4x32(uint64_t seed, uint64_t subsequence = 0, uint64_t offset = 0)
      : seed_(seed), subsequence_(subsequence), block_index_(offset / 4), lane_(static_cast<int>(offset % 4)) {
    block_ = compute_block();
  }

  /// The next word: curand().
  RUSH_HD constexpr uint32_t operator()() {
    const uint32_t result = block_[lane_];
    if (++lane_ == 4) {
      lane_ = 0;
      advance();
    }
    return result;
  }

  /// The next four words, wherever the walk stands: curand4().
  RUSH_HD constexpr PhiloxBlock next4() {
    const PhiloxBlock current = block_;
    advance();
    PhiloxBlock result{};
    for (int i = 0; i < 4; ++i) result.word[i] = lane_ + i < 4 ? current[lane_ + i] : block_[lane_ + i - 4];
    return result;
  }

 private:
  uint64_t seed_;
  uint64_t subsequence_;
  uint64_t block_index_;
  int lane_;  // of the next word in block_
  PhiloxBlock block_{};

  RUSH_HD constexpr PhiloxBlock compute_block() const {
    const PhiloxBlock counter = {{static_cast<uint32_t>(block_index_), static_cast<uint32_t>(block_index_ >> 32),
                                  static_cast<uint32_t>(subsequence_), static_cast<uint32_t>(subsequence_ >> 32)}};
    return philox4x32_10(counter, static_cast<uint32_t>(seed_), static_cast<uint32_t>(seed_ >> 32));
  }

  RUSH_HD constexpr void advance() {
    if (++block_index_ == 0) ++subsequence_;
    block_ = compute_block();
  }
};

/// What a kernel receives: the band of the stream reserved for it. While a CUDA graph is being captured, the seed and
/// the offset of a later replay are not known; `replay` then points to two words in device memory, the seed and the
/// offset that the replay starts from, and `offset` counts from there.
struct PhiloxState {
  uint64_t seed;
  uint64_t offset;
  const uint64_t* replay = nullptr;

  /// The state with its seed and offset known. Call it where `replay` can be read: in the kernel.
  RUSH_HD constexpr PhiloxState resolved() const {
    return replay ? PhiloxState{replay[0], replay[1] + offset} : PhiloxState{seed, offset};
  }
};

/// The words 4*group, ..., 4*group + 3 of a reservation. See Note [One random stream], 1. A kernel that reserved more
/// than one block per subsequence counts them with `block`.
RUSH_HD constexpr PhiloxBlock philox_block(const PhiloxState& reserved, uint64_t group, uint64_t block = 0) {
  const PhiloxState state = reserved.resolved();
  const uint64_t index = state.offset / 4 + block;
  const PhiloxBlock counter = {{static_cast<uint32_t>(index), static_cast<uint32_t>(index >> 32),
                                static_cast<uint32_t>(group), static_cast<uint32_t>(group >> 32)}};
  return philox4x32_10(counter, static_cast<uint32_t>(state.seed), static_cast<uint32_t>(state.seed >> 32));
}

/// Word `w` of a reservation, for a kernel that cannot treat neighbours together. See Note [One random stream], 1.
RUSH_HD constexpr uint32_t philox_word(const PhiloxState& reserved, uint64_t w) {
  return philox_block(reserved, w / 4)[static_cast<int>(w % 4)];
}

/// Element i's own walk. See Note [One random stream], 2.
RUSH_HD constexpr Philox4x32 philox_sequence(const PhiloxState& reserved, uint64_t i) {
  const PhiloxState state = reserved.resolved();
  return Philox4x32(state.seed, i, state.offset);
}

/// 64 random bits from two words, the first of which is the upper half, as in at::CPUGeneratorImpl::random64.
RUSH_HD constexpr uint64_t join_words(uint32_t upper, uint32_t lower) {
  return static_cast<uint64_t>(upper) << 32 | lower;
}

/// Uniform in [0, 1): the lowest bits of a word times 2^-bits, as at::uniform_real_distribution. There are as many bits
/// as T's significand has (float 24, Half 11, BFloat16 8), so that the result is exact in T and never rounds up to 1.
template <class T = float>
RUSH_HD constexpr float uniform_real(uint32_t word) {
  constexpr int kBits = std::numeric_limits<T>::digits;
  static_assert(kBits <= std::numeric_limits<float>::digits);
  return static_cast<float>(word & ((1u << kBits) - 1)) * (1.0f / (1u << kBits));
}

/// Uniform in [0, 1) with 53 bits, from 64.
RUSH_HD constexpr double uniform_real_double(uint64_t bits) {
  return static_cast<double>(bits & ((uint64_t{1} << 53) - 1)) * 0x1p-53;
}

}  // namespace rush
