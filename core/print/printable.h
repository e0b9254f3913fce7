// Text from anywhere (a file, a caller, another library) made fit for a line on a terminal.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>

namespace rush {

/// `text` on one line of at most about `longest` bytes. Line breaks and tabs become spaces; other control characters
/// and bytes that are no UTF-8, with which a file could rewrite the screen, become "\x1b"; what is too long loses its
/// middle, and says how much.
std::string printable(std::string_view text, size_t longest);

}  // namespace rush
