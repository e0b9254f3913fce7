// CRC-32 of bytes as they pass: finds every change of up to 32 consecutive bits. Not for anything that an adversary may
// forge.
#pragma once

#include <cstddef>
#include <cstdint>

namespace rush::io {

/// The checksum of ISO 3309, gzip and ZIP.
class Crc32 {
 public:
  void update(const void* bytes, size_t size);
  uint32_t value() const { return value_; }

 private:
  uint32_t value_ = 0;
};

}  // namespace rush::io
