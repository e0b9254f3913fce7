#include "core/str.h"

#include <charconv>

#include "core/array_ref.h"
#include "core/complex.h"
#include "core/half.h"

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

template <class T>
void append_complex(std::string& out, const complex<T>& value) {
  out.push_back('(');
  append(out, value.real());
  const std::string imag = str(value.imag());
  if (imag.front() != '-') out.push_back('+');
  out.append(imag).append("j)");
}
}  // namespace

std::string upper_case(std::string text) {
  for (char& c : text) c = c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  return text;
}

void append(std::string& out, std::string_view text) { out.append(text); }
void append(std::string& out, IntArrayRef sizes) { append<IntArrayRef>(out, sizes); }
void append(std::string& out, const char* text) { out.append(text ? text : "(null)"); }

namespace detail {
void append_signed(std::string& out, long long value) { append_chars(out, value); }
void append_unsigned(std::string& out, unsigned long long value) { append_chars(out, value); }
void append_float(std::string& out, float value) { append_chars(out, value, std::chars_format::general); }
void append_double(std::string& out, double value) { append_chars(out, value, std::chars_format::general); }
}  // namespace detail

void append(std::string& out, Half value) { append(out, static_cast<float>(value)); }
void append(std::string& out, BFloat16 value) { append(out, static_cast<float>(value)); }
void append(std::string& out, const complex<float>& value) { append_complex(out, value); }
void append(std::string& out, const complex<double>& value) { append_complex(out, value); }

}  // namespace rush
