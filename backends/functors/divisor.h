// The greatest common divisor of two integers, and their least common multiple.
#pragma once
#include <type_traits>

#include "core/integer.h"

namespace rush::functors {

// How many zeros are below the lowest one of x, which is not 0.
template <class U>
RUSH_HD int trailing_zeros(U x) {
#ifdef RUSH_DEVICE_CODE
  return (sizeof(U) == 4 ? __ffs(static_cast<int>(x)) : __ffsll(static_cast<long long>(x))) - 1;
#else
  return sizeof(U) == 4 ? __builtin_ctz(static_cast<uint32_t>(x)) : __builtin_ctzll(x);
#endif
}

// By subtractions and shifts, since a remainder of 64 bits takes a GPU a hundred instructions (J. Stein, "Computational
// problems associated with Racah algebra", 1967). That of the lowest number and 0 is the lowest number again.
struct Gcd {
  template <class T>
  RUSH_HD T operator()(T a, T b) const {
    using U = std::conditional_t<(sizeof(T) > 4), uint64_t, uint32_t>;
    U x = a < 0 ? U(0) - static_cast<U>(a) : static_cast<U>(a),
      y = b < 0 ? U(0) - static_cast<U>(b) : static_cast<U>(b);
    if (x == 0 || y == 0) return static_cast<T>(x | y);
    const int common = trailing_zeros<U>(x | y);
    x >>= trailing_zeros(x);
    y >>= trailing_zeros(y);
    while (x != y) {  // both are odd
      const U difference = x > y ? x - y : y - x;
      x = x > y ? y : x;
      y = difference >> trailing_zeros(difference);
    }
    return static_cast<T>(x << common);
  }
};

struct Lcm {
  template <class T>
  RUSH_HD T operator()(T a, T b) const {
    const T divisor = Gcd()(a, b);
    if (divisor == 0) return 0;
    const T product = wrap_mul(static_cast<T>(a / divisor), b);
    return product < 0 ? wrap_sub(T(0), product) : product;
  }
};

}  // namespace rush::functors
