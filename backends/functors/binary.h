// Arithmetic of two operands. T is the type that the computation is done in: float for the 16-bit ones.
#pragma once
#include "core/macros.h"

namespace rush::functors {

struct Add {
  template <class T>
  RUSH_HD T operator()(T a, T b) const {
    return static_cast<T>(a + b);
  }
};

template <class T>
struct AddScaled {  // a + alpha * b
  T alpha;
  RUSH_HD T operator()(T a, T b) const { return static_cast<T>(a + alpha * b); }
};

struct Mul {
  template <class T>
  RUSH_HD T operator()(T a, T b) const {
    return static_cast<T>(a * b);
  }
};

struct Div {
  template <class T>
  RUSH_HD T operator()(T a, T b) const {
    return a / b;
  }
};

}  // namespace rush::functors
