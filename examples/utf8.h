#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace examples {

/// The length of the character at the beginning of `text`; 0 if that is no valid UTF-8 or `text` is empty.
size_t utf8_character(std::string_view text);

/// `text` with U+FFFD, the replacement character, in place of each byte that is part of no valid character.
std::string valid_utf8(std::string_view text);

}  // namespace examples
