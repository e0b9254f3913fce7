#include "core/str.h"

#include <charconv>

namespace rush {

namespace {
// Long enough for any 64-bit integer (20 characters) and any shortest double (24).
constexpr int kMaxNumberLength = 32;

template <class T, class... Format>
void append_chars(std::string& out, T value, Format... format) {
  char digits[kMaxNumberLength];
  const auto end = std::to_chars(digits, digits + kMaxNumberLength, value, format...).ptr;
  out.append(digits, end);
}
}  // namespace

namespace detail {
void append_signed(std::string& out, long long value) { append_chars(out, value); }
void append_unsigned(std::string& out, unsigned long long value) { append_chars(out, value); }
void append_float(std::string& out, float value) { append_chars(out, value, std::chars_format::general); }
void append_double(std::string& out, double value) { append_chars(out, value, std::chars_format::general); }
}  // namespace detail

}  // namespace rush
