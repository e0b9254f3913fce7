// The i-th number of a range, and the kernels that fill a tensor with them. T is the element type; the 16-bit ones
// compute in float.
#pragma once
#include <cmath>
#include <type_traits>

#include "backends/functors/pick.h"
#include "core/complex_math.h"
#include "core/integer.h"
#include "core/macros.h"
#include "core/ops/factory/range.h"
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

template <class T>
struct Constant {
  typename Linspace<T>::Step value;
  RUSH_HD T operator()(int64_t) const { return static_cast<T>(value); }
};

// ---- the kernels: Generate::run<T>(op, out, f) sets out[i] to f(i) on one device

template <class Generate>
struct ArangeLoop {
  template <class T>
  static void run(const Tensor& out, const Scalar& start, const Scalar& step) {
    using Math = range_math_t<T>;
    Generate::template run<T>("arange", out, Arange<T>{start.to<Math>(), step.to<Math>()});
  }
};

template <class Generate>
struct LinspaceLoop {
  template <class T>
  static void run(const Tensor& out, const Scalar& start, const Scalar& end) {
    using End = opmath_t<T>;
    Generate::template run<T>("linspace", out, Linspace<T>(start.to<End>(), end.to<End>(), out.numel()));
  }
};

template <class Generate>
struct LogspaceLoop {
  template <class T>
  static void run(const Tensor& out, const Scalar& start, const Scalar& end, double base) {
    using End = opmath_t<T>;
    using Step = typename Linspace<T>::Step;
    using std::pow;
    const auto step_base = Scalar(base).to<Step>();
    // A single power is that of the start as it is, even where the result is an integer.
    if (out.numel() == 1) {
      return Generate::template run<T>("logspace", out, Constant<T>{pow(step_base, start.to<Step>())});
    }
    Generate::template run<T>("logspace", out,
                              Logspace<T>{Linspace<T>(start.to<End>(), end.to<End>(), out.numel()), step_base});
  }
};

template <class Generate>
void set_ranges(DeviceType device) {
  set_by_dtype<kernels::arange, ArangeLoop<Generate>, RealTypes>(device);
  set_by_dtype<kernels::linspace, LinspaceLoop<Generate>, NumberTypes>(device);
  set_by_dtype<kernels::logspace, LogspaceLoop<Generate>, NumberTypes>(device);
}

}  // namespace rush::functors
