// Printing of what describes a tensor, as libtorch prints it: `std::cout << x.sizes() << x.dtype() << x.device()`.
// Tensors themselves print with core/tensor.h. The standard's streams alone, so that a program's own class may take any
// value by a template; they are templates, so that this needs no <ostream>.
#pragma once
#include <concepts>
#include <iosfwd>

#include "core/array_ref.h"
#include "core/scalar.h"
#include "core/str.h"
#include "core/tensor_options.h"

namespace rush {

namespace detail {
// "Float", "Long".
constexpr const char* enumerator_name(ScalarType type) { return traits_of(type).enumerator; }
template <class T, class... Choices>
concept OneOf = (std::same_as<T, Choices> || ...);
inline const char* printed(ScalarType type) { return enumerator_name(type); }
inline const char* printed(DeviceType type) { return device_type_name(type); }
inline const char* printed(Layout layout) {
  constexpr const char* names[] = {"Strided", "Sparse", "SparseCsr", "SparseCsc", "SparseBsr", "SparseBsc"};
  return names[static_cast<int>(layout)];
}
inline const char* printed(MemoryFormat format) {
  constexpr const char* names[] = {"Contiguous", "Preserve", "ChannelsLast", "ChannelsLast3d"};
  return names[static_cast<int>(format)];
}
// What a number is in print; libtorch's headers change it.
using ScalarText = std::string (*)(const Scalar&);
inline constinit ScalarText scalar_text = [](const Scalar& number) { return str(number); };
inline std::string printed(const Scalar& number) { return scalar_text(number); }
template <class T>
std::string printed(const T& value) {
  return str(value);
}
}  // namespace detail

/// As the float that it converts to.
template <class Traits, class T>
requires is_reduced_float_v<T> || is_float8_v<T> std::basic_ostream<char, Traits>
&operator<<(std::basic_ostream<char, Traits>& stream, const T& value) { return stream << static_cast<float>(value); }

template <class Traits,
          detail::OneOf<ScalarType, TypeMeta, DeviceType, Device, Layout, MemoryFormat, Scalar, TensorOptions> T>
std::basic_ostream<char, Traits>& operator<<(std::basic_ostream<char, Traits>& stream, const T& value) {
  return stream << detail::printed(value);
}

/// [2, 3]
template <class Traits, class T>
requires requires(std::basic_ostream<char, Traits>& s, const T& t) { s << t; }
std::basic_ostream<char, Traits>& operator<<(std::basic_ostream<char, Traits>& stream, ArrayRef<T> values) {
  stream << '[';
  for (size_t i = 0; i < values.size(); ++i) {
    if (i > 0) stream << ", ";
    stream << values[i];
  }
  stream << ']';
  return stream;
}

}  // namespace rush
