#include "core/print/printable.h"

#include <cstdint>

#include "core/str.h"

namespace rush {

namespace {

// How many bytes the UTF-8 character at the start of `text` has that a terminal shows as it is; 0 where there is none.
// C1 control characters (U+0080 to U+009F) act as escape sequences do. Overlong forms and surrogates are not told from
// others: a terminal shows a replacement for them.
size_t shown_character(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  const uint8_t first = byte(0);
  if (first < 0x80) return first >= 0x20 && first != 0x7F ? 1 : 0;
  const size_t length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4 || text.size() < length) return 0;
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
  }
  return first == 0xC2 && byte(1) < 0xA0 ? 0 : length;
}

void append_escaped(std::string& out, char c) {
  static constexpr char kDigits[] = "0123456789abcdef";
  const auto byte = static_cast<uint8_t>(c);
  out += "\\x";
  out += kDigits[byte >> 4];
  out += kDigits[byte & 15];
}

bool is_inside_character(char c) { return (static_cast<uint8_t>(c) & 0xC0) == 0x80; }

// Without its middle. Two thirds of what stays come first: a message begins with what matters most.
std::string shortened(const std::string& text, size_t longest) {
  size_t head = longest * 2 / 3;
  size_t tail = text.size() - longest / 3;
  while (head > 0 && is_inside_character(text[head])) --head;
  while (tail < text.size() && is_inside_character(text[tail])) ++tail;
  return str(std::string_view(text).substr(0, head), " ... (", tail - head, " more bytes) ... ",
             std::string_view(text).substr(tail));
}

}  // namespace

std::string printable(std::string_view text, size_t longest) {
  std::string line;
  line.reserve(text.size());
  for (size_t i = 0; i < text.size();) {
    const char c = text[i];
    if (c == '\n' || c == '\r' || c == '\t') {
      line += ' ';
      ++i;
    } else if (const size_t length = shown_character(text.substr(i))) {
      line.append(text, i, length);
      i += length;
    } else {
      append_escaped(line, c);
      ++i;
    }
  }
  return line.size() <= longest ? line : shortened(line, longest);
}

}  // namespace rush
