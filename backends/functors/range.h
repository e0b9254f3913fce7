// The i-th number of a range. T is the element type; the 16-bit ones compute in float.
#pragma once
#include <cmath>
#include <type_traits>

#include "core/complex_math.h"
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
    return static_cast<T>(start + static_cast<range_math_t<T>>(i) * step);
  }
};

// From both ends to the middle, so that both ends are exact: start + i step, and end - (n - 1 - i) step.
template <class T>
struct Linspace {
  using Value = opmath_t<T>;
  using Step = std::conditional_t<std::is_integral_v<T>, double, Value>;  // as PyTorch's
  Value start, end;
  Step step;
  int64_t steps;
  Linspace(Value start, Value end, int64_t steps)
      : start(start), end(end), step((Step(end) - Step(start)) / Step(static_cast<double>(steps - 1))), steps(steps) {}
  RUSH_HD T operator()(int64_t i) const {
    if (steps == 1) return static_cast<T>(start);
    const Step at = i < steps / 2 ? Step(start) + step * Step(static_cast<double>(i))
                                  : Step(end) - step * Step(static_cast<double>(steps - i - 1));
    return static_cast<T>(at);
  }
};

}  // namespace rush::functors
