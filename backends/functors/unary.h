// Functions of one operand. T is the type that the computation is done in: float for the 16-bit ones.
#pragma once
#include <cmath>

#include "core/complex_math.h"
#include "core/macros.h"

namespace rush::functors {

struct Neg {
  template <class T>
  RUSH_HD T operator()(T a) const {
    return static_cast<T>(-a);
  }
};

struct Exp {
  template <class T>
  RUSH_HD T operator()(T a) const {
    using std::exp;
    return exp(a);
  }
};

}  // namespace rush::functors
