// MD5 of a byte string: identifies published data files. Not for anything that an adversary may forge.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace rush::io {

/// The MD5 digest of `bytes` (RFC 1321) as 32 lower-case hexadecimal digits.
std::string md5_hex(std::span<const uint8_t> bytes);

}  // namespace rush::io
