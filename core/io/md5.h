// MD5 of a byte string: identifies published data files. Not for anything that an adversary may forge.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace rush::io {

/// The MD5 digest of `bytes` (RFC 1321) as 32 lower-case hexadecimal digits.
std::string md5_hex(std::span<const uint8_t> bytes);
/// Of a text's bytes.
inline std::string md5_hex(std::string_view text) {
  return md5_hex(std::span(reinterpret_cast<const uint8_t*>(text.data()), text.size()));
}

}  // namespace rush::io
