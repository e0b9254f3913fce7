// Bytes of fixtures.
#pragma once
#include <string>

namespace rush::testing {

// The bytes that two hexadecimal digits each stand for.
inline std::string from_hex(const std::string& hex) {
  std::string bytes;
  for (size_t i = 0; i < hex.size(); i += 2) bytes += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
  return bytes;
}

}  // namespace rush::testing
