#pragma once
#include "c10/macros/Macros.h"

#include <type_traits>

#include "ATen/OpMathType.h"
#include "core/device/device_type.h"

namespace at {
namespace detail {
template <class T>
constexpr auto accumulated() {
  if constexpr (std::is_same_v<T, bool>) {
    return std::type_identity<bool>();
  } else if constexpr (std::is_integral_v<T>) {
    return std::type_identity<int64_t>();
  } else {
    return std::type_identity<opmath_type<T>>();
  }
}
template <class T>
constexpr auto accumulated_on_cpu() {
  if constexpr (std::is_same_v<T, float>) {
    return std::type_identity<double>();
  } else if constexpr (std::is_same_v<T, rush::complex<float>>) {
    return std::type_identity<rush::complex<double>>();
  } else {
    return accumulated<T>();
  }
}
}  // namespace detail

/// The type in which many numbers of type T are added up: int64_t for integers; for others that of their arithmetic on
/// a GPU, and on the CPU double for float.
template <class T, bool is_cuda>
using acc_type = typename std::conditional_t<is_cuda, decltype(detail::accumulated<T>()),
                                             decltype(detail::accumulated_on_cpu<T>())>::type;
/// As on that type of device.
template <class T, rush::DeviceType device>
using acc_type_device = acc_type<T, device != rush::kCPU>;
}  // namespace at
