// What happens to an element that is written at an index: old value and new value to what is stored.
#pragma once
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "backends/functors/binary.h"

namespace rush::functors {

struct WriteAssign {
  template <class T>
  RUSH_HD T operator()(T, T value) const {
    return value;
  }
};

using WriteAdd = Add;
using WriteMultiply = Mul;

// A function of the values alone, not of their order, as threads write them in any: NaN stays, and becomes the default
// one, and +0 is larger than -0. GCC vectorises it with copysign, and not with signbit.
template <bool largest>
struct WriteExtreme {
  template <class T>
  RUSH_HD T operator()(T old, T value) const {
    using Math = opmath_t<T>;
    const Math a = static_cast<Math>(old), b = static_cast<Math>(value);
    if (a != a) return old;
    if (b != b) return static_cast<T>(std::numeric_limits<Math>::quiet_NaN());
    if (a != b) return (largest ? a < b : b < a) ? value : old;
    return sign_of(a) == largest ? value : old;
  }

 private:
  template <class T>
  RUSH_HD static bool sign_of(T x) {
    if constexpr (std::is_floating_point_v<T>) {
      return std::copysign(T(1), x) < 0;
    } else {
      return false;
    }
  }
};
using WriteMinimum = WriteExtreme<false>;
using WriteMaximum = WriteExtreme<true>;

// The mean of `count` values from their sum; integers round down, and a sum of nothing stays as it is.
struct DivideByCount {
  template <class T>
  RUSH_HD T operator()(T sum, int64_t count) const {
    if (count <= 1) return sum;
    if constexpr (std::is_integral_v<T>) {
      const int64_t wide = static_cast<int64_t>(sum);
      return static_cast<T>(wide / count - (wide % count < 0 ? 1 : 0));
    } else {
      return sum / static_cast<T>(count);
    }
  }
};

}  // namespace rush::functors
