// Arithmetic of three operands.
#pragma once
#include <cmath>

#include "core/complex_math.h"
#include "core/integer.h"
#ifndef __CUDACC_RTC__  // see Note [Functors compiled at run time]
#include "backends/functors/table.h"
#include "core/ops/pointwise/ternary.h"
#endif

namespace rush::functors {

struct Where {
  template <class T>
  RUSH_HD T operator()(bool condition, T a, T b) const {
    return condition ? a : b;
  }
};

template <class T>
struct Addcmul {  // a + value * b * c
  T value;
  RUSH_HD T operator()(T a, T b, T c) const {
    if constexpr (is_integer<T>) return wrap_add(a, wrap_mul(wrap_mul(value, b), c));
    return static_cast<T>(a + value * b * c);
  }
};

template <class T>
struct Addcdiv {  // a + value * b / c
  T value;
  RUSH_HD T operator()(T a, T b, T c) const { return a + value * b / c; }
};

// Computed from the nearer end, so that weights 0 and 1 give the ends exactly.
struct Lerp {
  template <class T>
  RUSH_HD static bool is_near_start(T weight) {
    using std::abs;
    return abs(weight) < decltype(abs(weight))(0.5);
  }
  template <class T>
  RUSH_HD T operator()(T start, T end, T weight) const {
    return is_near_start(weight) ? start + weight * (end - start) : end - (end - start) * (T(1) - weight);
  }
};

template <class T>
struct LerpScalar {
  T weight;
  RUSH_HD T operator()(T start, T end) const { return Lerp()(start, end, weight); }
};

struct Clamp {
  template <class T>
  RUSH_HD T operator()(T a, T min, T max) const {
    if (a != a) return a;
    if (min != min || max != max) return min != min ? min : max;
    const T raised = a < min ? min : a;
    return raised > max ? max : raised;
  }
};

template <class T>
struct ClampScalar {
  T min, max;
  RUSH_HD T operator()(T a) const {
    const T raised = a < min ? min : a;
    return raised > max ? max : raised;
  }
};
template <class T>
struct ClampMin {
  T min;
  RUSH_HD T operator()(T a) const { return a < min ? min : a; }
};
template <class T>
struct ClampMax {
  T max;
  RUSH_HD T operator()(T a) const { return a > max ? max : a; }
};

#ifndef __CUDACC_RTC__
using TernaryTable =
    Table<Row<kernels::addcmul, With<Addcmul>, NumberTypes>, Row<kernels::addcdiv, With<Addcdiv>, FloatTypes>,
          Row<kernels::lerp, Lerp, FloatTypes>, Row<kernels::lerp_scalar, With<LerpScalar>, FloatTypes>,
          Row<kernels::clamp, Clamp, RealTypes>>;
#endif

}  // namespace rush::functors
