#include "examples/utf8.h"

#include <algorithm>
#include <cstdint>

namespace examples {

size_t utf8_character(std::string_view text) {
  if (text.empty()) return 0;
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  const uint8_t first = byte(0);
  if (first < 0x80) return 1;
  const size_t length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4 || text.size() < length) return 0;
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
  }
  // No form longer than need be, no surrogates, nothing beyond U+10FFFF.
  const bool wrong = (first == 0xE0 && byte(1) < 0xA0) || (first == 0xED && byte(1) > 0x9F) ||
                     (first == 0xF0 && byte(1) < 0x90) || (first == 0xF4 && byte(1) > 0x8F);
  return wrong ? 0 : length;
}

std::string valid_utf8(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const size_t length = utf8_character(text);
    out += length > 0 ? text.substr(0, length) : "\xef\xbf\xbd";
    text.remove_prefix(std::max<size_t>(length, 1));
  }
  return out;
}

}  // namespace examples
