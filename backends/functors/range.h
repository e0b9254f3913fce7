// The i-th number of a range. T is the element type; the 16-bit ones compute in float.
#pragma once
#include <cmath>
#include <type_traits>

#include "core/complex_math.h"
#include "core/integer.h"
#include "core/macros.h"
#include "core/scalar_type.h"

namespace rush::functors {

// Integers count exactly; float32 in double, so that a long range does not drift.
template <class T>
using range_math_t = std::conditional_t<std::is_integral_v<T>, int64_t, std::conditional_t<is_complex_v<T>, T, double>>;

template <class T>
struct Arange {  // start + i step
  range_math_t<T> start, step;
  RUSH_HD T operator()(int64_t i) const {
    if constexpr (std::is_integral_v<T>) return static_cast<T>(wrap_add(start, wrap_mul(i, step)));
    return static_cast<T>(start + static_cast<range_math_t<T>>(i) * step);
  }
};

// From both ends to the middle, so that both ends are exact: start + i step, and end - (n - 1 - i) step.
template <class T>
struct Linspace {
  using End = opmath_t<T>;
  using Step = std::conditional_t<std::is_integral_v<T>, double, End>;  // integers are cut only at the end
  End start, end;
  Step step;
  int64_t steps;
  Linspace(End start, End end, int64_t steps)
      : start(start), end(end), step((Step(end) - Step(start)) / count(steps - 1)), steps(steps) {}
  RUSH_HD Step at(int64_t i) const {
    if (steps == 1) return Step(start);
    return i < steps / 2 ? Step(start) + step * count(i) : Step(end) - step * count(steps - i - 1);
  }
  RUSH_HD T operator()(int64_t i) const { return static_cast<T>(at(i)); }

 private:
  // Complex numbers are made from their real part only.
  RUSH_HD static Step count(int64_t i) { return Step(static_cast<decltype(real_part(Step()))>(i)); }
  template <class R>
  static R real_part(R);
  template <class R>
  static R real_part(complex<R>);
};

template <class T>
struct Logspace {  // base ^ the exponents of linspace
  Linspace<T> exponents;
  typename Linspace<T>::Step base;
  RUSH_HD T operator()(int64_t i) const {
    using std::pow;
    return static_cast<T>(pow(base, exponents.at(i)));
  }
};

}  // namespace rush::functors
