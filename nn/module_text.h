// How modules are written out: as libtorch's, letter for letter. Not part of the API: the modules' sources include it.
#pragma once
#include <concepts>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/str.h"
#include "nn/expanding_array.h"
#include "nn/printed_namespace.h"

namespace rush::nn::detail {

// A module in print. Numbers take the form that the stream is set to, and a truth value leaves std::boolalpha on: both
// as in libtorch, whose modules write their options to the stream one by one.
class ModuleText {
 public:
  ModuleText() = default;
  ModuleText(std::string_view text) { *this += text; }
  ModuleText(const char* text) : ModuleText(std::string_view(text)) {}
  ModuleText& operator+=(std::string_view text);
  ModuleText& operator+=(const char* text) { return *this += std::string_view(text); }
  ModuleText& operator+=(const ModuleText& other);
  void append_number(double value) { pieces_.emplace_back(value); }
  void append_flag(bool value) { pieces_.emplace_back(value); }

  friend std::ostream& operator<<(std::ostream& stream, const ModuleText& text);

 private:
  std::vector<std::variant<std::string, double, bool>> pieces_;
};

template <size_t D, class T>
void append_option(ModuleText& out, const ExpandingArray<D, T>& values);
template <class T>
void append_option(ModuleText& out, const std::optional<T>& value);
inline void append_option(ModuleText& out, double value) { out.append_number(value); }
inline void append_option(ModuleText& out, bool value) { out.append_flag(value); }
inline void append_option(ModuleText& out, const ModuleText& text) { out += text; }
template <class T>
requires rush::detail::Range<T> &&
    (!std::convertible_to<const T&, std::string_view>)void append_option(ModuleText& out, const T& values) {
  const char* separator = "[";
  for (const auto& value : values) {
    out += separator;
    append_option(out, value);
    separator = ", ";
  }
  out += values.begin() == values.end() ? "[]" : "]";
}
// Text and integers.
template <class T>
requires std::integral<T> || std::convertible_to<const T&, std::string_view>
void append_option(ModuleText& out, const T& value) { out += str(value); }
// One number stands without brackets.
template <size_t D, class T>
void append_option(ModuleText& out, const ExpandingArray<D, T>& values) {
  if constexpr (D == 1) {
    append_option(out, values[0]);
  } else {
    append_option(out, values.ref());
  }
}
template <class T>
void append_option(ModuleText& out, const std::optional<T>& value) {
  if (value) {
    append_option(out, *value);
  } else {
    out += "None";
  }
}

// The arguments' texts in a row.
template <class... Args>
ModuleText options_text(const Args&... args) {
  ModuleText out;
  (append_option(out, args), ...);
  return out;
}

// The same after "rush::nn::".
template <class... Args>
ModuleText module_text(const Args&... args) {
  return options_text(printed_prefix(), args...);
}

}  // namespace rush::nn::detail

// The text of a module of options, Name(describe(options)), and a forward that is a function of nn::functional.
#define RUSH_PRINT_OPTIONS(Name)                                      \
  void Name##Impl::pretty_print(std::ostream& stream) const {         \
    stream << detail::module_text(#Name "(", describe(options), ")"); \
  }
#define RUSH_OPTIONS_MODULE_BODY(Name, function)    \
  Tensor Name##Impl::forward(const Tensor& input) { \
    const ModuleScope scope(*this);                 \
    return functional::function(input, options);    \
  }                                                 \
  RUSH_PRINT_OPTIONS(Name)
