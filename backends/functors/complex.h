// Complex numbers from two real ones.
#pragma once
#include "core/complex_math.h"

namespace rush::functors {

struct MakeComplex {
  template <class T>
  RUSH_HD complex<T> operator()(T real, T imag) const {
    return {real, imag};
  }
};
struct MakePolar {
  template <class T>
  RUSH_HD complex<T> operator()(T radius, T angle) const {
    return polar(radius, angle);
  }
};

}  // namespace rush::functors
