// Integers in files: the lowest byte first.
#pragma once

#include <cstddef>
#include <cstdint>

namespace rush::io {

/// The number in the `count` bytes from `bytes` on; at most 8.
inline uint64_t get_little_endian(const uint8_t* bytes, size_t count) {
  uint64_t value = 0;
  for (size_t i = 0; i < count; ++i) value |= uint64_t{bytes[i]} << (8 * i);
  return value;
}

/// Appends the lowest `count` bytes of `value` to a text or a list of bytes.
template <class Bytes>
void put_little_endian(Bytes& out, uint64_t value, size_t count) {
  for (size_t i = 0; i < count; ++i) out.push_back(static_cast<typename Bytes::value_type>(value >> (8 * i)));
}

}  // namespace rush::io
