// What tests look for in a text.
#pragma once
#include <doctest/doctest.h>

#include <cstddef>
#include <string>
#include <string_view>

namespace rush::testing {

// Whether the text has this part; a test that fails shows the text.
inline bool contains(const std::string& text, std::string_view part) {
  const bool found = text.find(part) != text.npos;
  if (!found) MESSAGE(text, " lacks ", part);
  return found;
}

// How many times the text has this part, without overlaps.
inline size_t count(const std::string& text, std::string_view part) {
  size_t found = 0;
  for (size_t at = text.find(part); at != text.npos; at = text.find(part, at + part.size())) ++found;
  return found;
}

}  // namespace rush::testing
