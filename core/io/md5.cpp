#include "core/io/md5.h"

#include <array>
#include <bit>
#include <cmath>
#include <cstring>

#include "core/io/little_endian.h"

namespace rush::io {
namespace {

constexpr size_t kBlock = 64;

// RFC 1321, section 3.4: T[i] = floor(2^32 * |sin(i + 1)|).
std::array<uint32_t, 64> sine_table() {
  std::array<uint32_t, 64> table;
  for (int i = 0; i < 64; ++i)
    table[i] = static_cast<uint32_t>(std::floor(4294967296.0 * std::fabs(std::sin(i + 1.0))));
  return table;
}

constexpr int kRotations[4][4] = {{7, 12, 17, 22}, {5, 9, 14, 20}, {4, 11, 16, 23}, {6, 10, 15, 21}};

struct State {
  uint32_t a = 0x67452301, b = 0xefcdab89, c = 0x98badcfe, d = 0x10325476;

  void add_block(const uint8_t* block) {
    static const std::array<uint32_t, 64> table = sine_table();
    uint32_t words[16];
    for (int i = 0; i < 16; ++i) words[i] = static_cast<uint32_t>(get_little_endian(block + 4 * i, 4));

    State s = *this;
    for (int i = 0; i < 64; ++i) {
      uint32_t mix;
      int word;
      switch (i / 16) {
        case 0: mix = (s.b & s.c) | (~s.b & s.d), word = i; break;
        case 1: mix = (s.b & s.d) | (s.c & ~s.d), word = (5 * i + 1) % 16; break;
        case 2: mix = s.b ^ s.c ^ s.d, word = (3 * i + 5) % 16; break;
        default: mix = s.c ^ (s.b | ~s.d), word = 7 * i % 16; break;
      }
      uint32_t next_b = s.b + std::rotl(s.a + mix + words[word] + table[i], kRotations[i / 16][i % 4]);
      s = State{s.d, next_b, s.b, s.c};
    }
    a += s.a, b += s.b, c += s.c, d += s.d;
  }

  std::string hex() const {
    constexpr char digits[] = "0123456789abcdef";
    std::string out;
    for (uint32_t word : {a, b, c, d}) {
      for (int byte = 0; byte < 4; ++byte) {
        out += digits[word >> (8 * byte + 4) & 15];
        out += digits[word >> (8 * byte) & 15];
      }
    }
    return out;
  }
};

}  // namespace

std::string md5_hex(std::span<const uint8_t> bytes) {
  State state;
  size_t whole = bytes.size() / kBlock * kBlock;
  for (size_t at = 0; at < whole; at += kBlock) state.add_block(bytes.data() + at);

  // The tail: the remaining bytes, one set bit, zeros, and the length in bits as the last eight bytes of a block.
  uint8_t tail[2 * kBlock] = {};
  size_t rest = bytes.size() - whole;
  if (rest > 0) std::memcpy(tail, bytes.data() + whole, rest);
  tail[rest] = 0x80;
  size_t tail_size = rest < kBlock - 8 ? kBlock : 2 * kBlock;
  uint64_t bits = uint64_t{bytes.size()} * 8;
  for (int i = 0; i < 8; ++i) tail[tail_size - 8 + i] = static_cast<uint8_t>(bits >> (8 * i));
  for (size_t at = 0; at < tail_size; at += kBlock) state.add_block(tail + at);
  return state.hex();
}

}  // namespace rush::io
