// Printing of what describes a tensor, as libtorch prints it: `std::cout << x.sizes() << x.dtype() << x.device()`.
// Tensors themselves print with core/tensor.h.
#pragma once
#include <concepts>

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
template <class Stream, class T>
requires(is_reduced_float_v<T> || is_float8_v<T>) && requires(Stream& s) { s << 1.0f; }
Stream& operator<<(Stream& stream, const T& value) {
  stream << static_cast<float>(value);
  return stream;
}

template <class Stream,
          detail::OneOf<ScalarType, TypeMeta, DeviceType, Device, Layout, MemoryFormat, Scalar, TensorOptions> T>
requires requires(Stream& s) { s << std::string(); }
Stream& operator<<(Stream& stream, const T& value) {
  stream << detail::printed(value);
  return stream;
}

/// [2, 3]
template <class Stream, class T>
requires requires(Stream& s, const T& t) { s << std::string() << t; }
Stream& operator<<(Stream& stream, ArrayRef<T> values) {
  stream << '[';
  for (size_t i = 0; i < values.size(); ++i) {
    if (i > 0) stream << ", ";
    stream << values[i];
  }
  stream << ']';
  return stream;
}

}  // namespace rush
