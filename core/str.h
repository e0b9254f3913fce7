// str(a, b, ...): one string from values of any kind, without streams. A type takes part by offering an overload
// `void append(std::string& out, const T& value)` in its own namespace, where argument-dependent lookup finds it.
#pragma once

#include <concepts>
#include <string>
#include <string_view>

namespace rush {

struct Half;
struct BFloat16;
template <class T>
struct complex;

namespace detail {
void append_signed(std::string& out, long long value);
void append_unsigned(std::string& out, unsigned long long value);
void append_float(std::string& out, float value);
void append_double(std::string& out, double value);

// Integers that are numbers to us: signed char and unsigned char are (they are the int8 and uint8 dtypes), char is not.
template <class T>
concept Number = std::integral<T> && !std::same_as<T, bool> && !std::same_as<T, char>;

template <class R>
concept Range = requires(const R& range) {
  range.begin();
  range.end();
}
&&!std::convertible_to<const R&, std::string_view>;
}  // namespace detail

/// With the letters of ASCII in upper case.
std::string upper_case(std::string text);

/// Out of line, like all of these: a message is put together once, and code that can fail is everywhere.
void append(std::string& out, std::string_view text);

/// A null pointer, which some C libraries return for an unknown status, prints as "(null)".
void append(std::string& out, const char* text);

/// Constrained to the exact type, so that nothing (a pointer, a class with a conversion) converts to it silently.
template <std::same_as<bool> T>
void append(std::string& out, T value) {
  out.append(value ? "true" : "false");
}

template <std::same_as<char> T>
void append(std::string& out, T value) {
  out.push_back(value);
}

template <detail::Number T>
void append(std::string& out, T value) {
  if constexpr (std::signed_integral<T>) {
    detail::append_signed(out, value);
  } else {
    detail::append_unsigned(out, value);
  }
}

/// The fewest digits that read back as the same value; exponents as %g chooses them: 1.0 is "1", 1e-7 is "1e-07".
template <std::floating_point T>
void append(std::string& out, T value) {
  if constexpr (std::same_as<T, float>) {
    detail::append_float(out, value);
  } else {
    detail::append_double(out, static_cast<double>(value));
  }
}

void append(std::string& out, Half value);
void append(std::string& out, BFloat16 value);

/// As Python prints it: (1+2j).
void append(std::string& out, const complex<float>& value);
void append(std::string& out, const complex<double>& value);

/// Sizes, strides, any list: (2, 3).
template <detail::Range R>
void append(std::string& out, const R& range) {
  out.push_back('(');
  const char* separator = "";
  for (const auto& element : range) {
    out.append(separator);
    append(out, element);
    separator = ", ";
  }
  out.push_back(')');
}

/// The arguments' texts, one after another with nothing between.
template <class... Args>
std::string str(const Args&... args) {
  std::string out;
  (append(out, args), ...);
  return out;
}

}  // namespace rush
