#include "examples/data_uri.h"

#include <cstdint>

namespace examples {

std::string data_uri(std::string_view mime_type, std::string_view bytes) {
  constexpr char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out = "data:" + std::string(mime_type) + ";base64,";
  for (size_t at = 0; at < bytes.size(); at += 3) {
    uint32_t group = 0;  // 24 bits: four characters of six
    for (size_t i = 0; i < 3; ++i) {
      group = group << 8 | (at + i < bytes.size() ? static_cast<uint8_t>(bytes[at + i]) : 0u);
    }
    for (int shift = 18; shift >= 0; shift -= 6) out += alphabet[group >> shift & 63];
  }
  const size_t padding = (3 - bytes.size() % 3) % 3;
  out.replace(out.size() - padding, padding, padding, '=');
  return out;
}

}  // namespace examples
