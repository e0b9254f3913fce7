// How modules are written out: as libtorch's, letter for letter. Not part of the API: the modules' sources include it.
#pragma once
#include <concepts>
#include <optional>
#include <string>
#include <string_view>

#include "core/str.h"
#include "nn/expanding_array.h"

namespace rush::nn::detail {

// Note [The names of modules in print]
// A module prints as "rush::nn::Linear(...)". In a program that was written for libtorch it is
// "torch::nn::Linear(...)": compat/ says so, before main, with set_printed_namespace. The rest is the same in both, and
// is what libtorch prints: numbers as a stream prints them, with six digits, and lists in square brackets.

// "rush", until it is set: `name` must live as long as the program.
const char* printed_namespace();
void set_printed_namespace(const char* name);
// "rush::nn::", or what stands for it.
std::string printed_prefix();

void append_option(std::string& out, double value);
template <size_t D, class T>
void append_option(std::string& out, const ExpandingArray<D, T>& values);
template <class T>
void append_option(std::string& out, const std::optional<T>& value);
template <class T>
requires rush::detail::Range<T> &&
    (!std::convertible_to<const T&, std::string_view>)void append_option(std::string& out, const T& values) {
  const char* separator = "[";
  for (const auto& value : values) {
    out += separator;
    append_option(out, value);
    separator = ", ";
  }
  out += values.begin() == values.end() ? "[]" : "]";
}
// Text, integers, truth values.
template <class T>
requires std::integral<T> || std::convertible_to<const T&, std::string_view>
void append_option(std::string& out, const T& value) { rush::append(out, value); }
// One number stands without brackets.
template <size_t D, class T>
void append_option(std::string& out, const ExpandingArray<D, T>& values) {
  if constexpr (D == 1) {
    append_option(out, values[0]);
  } else {
    append_option(out, values.ref());
  }
}
template <class T>
void append_option(std::string& out, const std::optional<T>& value) {
  if (value) {
    append_option(out, *value);
  } else {
    out += "None";
  }
}

// The arguments' texts in a row.
template <class... Args>
std::string options_text(const Args&... args) {
  std::string out;
  (append_option(out, args), ...);
  return out;
}

// The same after "rush::nn::".
template <class... Args>
std::string module_text(const Args&... args) {
  return printed_prefix() + options_text(args...);
}

}  // namespace rush::nn::detail
