// Whether numbers are finite, in kernels as on the host.
#pragma once
#include "c10/macros/Macros.h"

#include <type_traits>

#include "core/complex.h"
#include "core/half.h"
#include "core/macros.h"

namespace at {

/// Of an integer never, of a complex number where one of its halves is not a number.
template <class T>
RUSH_HD bool _isnan(T value) {
  if constexpr (requires { value.real(); }) {
    return _isnan(value.real()) || _isnan(value.imag());
  } else {
    return value != value;
  }
}
template <class T>
RUSH_HD bool _isinf(T value) {
  if constexpr (std::is_integral_v<T>) {
    return false;
  } else if constexpr (std::is_same_v<T, double>) {
    return __builtin_isinf(value);
  } else {
    return __builtin_isinf(static_cast<float>(value));
  }
}

}  // namespace at
