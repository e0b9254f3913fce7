// What reductions do with their elements. A reduction has an accumulator type Acc, and
//   In                         the type that an element is handed over in: its opmath type
//   Acc identity()             the accumulator of no elements
//   Acc take(Acc, In)          one more element
//   Acc combine(Acc, Acc)      two accumulators of different elements
//   result(Acc)                what is written out
#pragma once
#include <cmath>
#include <limits>
#include <type_traits>

#include "core/complex_math.h"
#include "core/integer.h"
#include "core/macros.h"
#include "core/scalar_type.h"

namespace rush::functors {

template <class T>
RUSH_HD bool is_nan(T value) {
  if constexpr (is_complex_v<T>) {
    return value.real() != value.real() || value.imag() != value.imag();
  } else {
    return value != value;
  }
}

// The smallest and the largest value of a type; infinite for floating point.
template <class T>
RUSH_HD constexpr T lowest_of() {
  if constexpr (std::is_floating_point_v<T>) return -std::numeric_limits<T>::infinity();
  return std::numeric_limits<T>::lowest();
}
template <class T>
RUSH_HD constexpr T highest_of() {
  if constexpr (std::is_floating_point_v<T>) return std::numeric_limits<T>::infinity();
  return std::numeric_limits<T>::max();
}

// The larger or smaller; NaN wins over every number, as in PyTorch.
struct TakeMax {
  template <class T>
  RUSH_HD T operator()(T a, T b) const {
    return ((b > a) | (b != b)) ? b : a;
  }
};
struct TakeMin {
  template <class T>
  RUSH_HD T operator()(T a, T b) const {
    return ((b < a) | (b != b)) ? b : a;
  }
};

// Whether a takes the place of b as the largest or the smallest so far: of equals the first stays, and so does the
// first NaN.
struct IsLarger {
  template <class T>
  RUSH_HD bool operator()(T a, T b) const {
    return (a > b) | ((a != a) & (b == b));
  }
};
struct IsSmaller {
  template <class T>
  RUSH_HD bool operator()(T a, T b) const {
    return (a < b) | ((a != a) & (b == b));
  }
};

// Sums T in A, which is wider for integers.
template <class T, class A = T>
struct Sum {
  using In = T;
  using Acc = A;
  RUSH_HD Acc identity() const { return A(0); }
  RUSH_HD Acc take(Acc acc, In x) const { return combine(acc, static_cast<A>(x)); }
  RUSH_HD Acc combine(Acc a, Acc b) const {
    if constexpr (is_integer<A>) return wrap_add(a, b);
    return a + b;
  }
  RUSH_HD A result(Acc acc) const { return acc; }
};

// The sum divided by how many there are: NaN for none.
template <class T>
struct Mean : Sum<T> {
  T count;
  explicit Mean(T n) : count(n) {}
  RUSH_HD T result(T acc) const { return acc / count; }
};

// The sum without the NaNs.
template <class T>
struct NanSum : Sum<T> {
  RUSH_HD T take(T acc, T x) const { return acc + (is_nan(x) ? T(0) : x); }
};

// Lanes of many factors would hold subnormal numbers, which a CPU multiplies slowly.
template <class T, class A = T>
struct Prod {
  static constexpr bool kShortLanes = true;
  using In = T;
  using Acc = A;
  RUSH_HD Acc identity() const { return A(1); }
  RUSH_HD Acc take(Acc acc, In x) const { return combine(acc, static_cast<A>(x)); }
  RUSH_HD Acc combine(Acc a, Acc b) const {
    if constexpr (is_integer<A>) return wrap_mul(a, b);
    return a * b;
  }
  RUSH_HD A result(Acc acc) const { return acc; }
};

template <class T>
struct Max {
  using In = T;
  using Acc = T;
  RUSH_HD Acc identity() const { return lowest_of<T>(); }
  RUSH_HD Acc take(Acc acc, In x) const { return TakeMax()(acc, x); }
  RUSH_HD Acc combine(Acc a, Acc b) const { return TakeMax()(a, b); }
  RUSH_HD T result(Acc acc) const { return acc; }
};

template <class T>
struct Min {
  using In = T;
  using Acc = T;
  RUSH_HD Acc identity() const { return highest_of<T>(); }
  RUSH_HD Acc take(Acc acc, In x) const { return TakeMin()(acc, x); }
  RUSH_HD Acc combine(Acc a, Acc b) const { return TakeMin()(a, b); }
  RUSH_HD T result(Acc acc) const { return acc; }
};

// NaN is not zero.
template <class T>
struct CountNonzero {
  using In = T;
  using Acc = int64_t;
  RUSH_HD Acc identity() const { return 0; }
  RUSH_HD Acc take(Acc acc, In x) const { return acc + !(x == T(0)); }
  RUSH_HD Acc combine(Acc a, Acc b) const { return a + b; }
  RUSH_HD int64_t result(Acc acc) const { return acc; }
};

// ---- vector norms, (sum |x|^p)^(1/p) and its limits; A is the real type of T ----

template <class T>
struct RealPart {
  using type = T;
};
template <class T>
struct RealPart<complex<T>> {
  using type = T;
};

template <class T>
struct NormSum {  // what the sums have in common
  using In = T;
  using Acc = typename RealPart<T>::type;
  RUSH_HD Acc identity() const { return 0; }
  RUSH_HD Acc combine(Acc a, Acc b) const { return a + b; }
  RUSH_HD Acc result(Acc acc) const { return acc; }
  RUSH_HD static Acc magnitude(T x) {
    using std::abs;
    return abs(x);
  }
};

template <class T>
struct NormZero : NormSum<T> {  // p = 0: how many are not zero
  using Acc = typename NormSum<T>::Acc;
  RUSH_HD Acc take(Acc acc, T x) const { return acc + (x == T(0) ? Acc(0) : Acc(1)); }
};
template <class T>
struct NormOne : NormSum<T> {  // p = 1
  using Acc = typename NormSum<T>::Acc;
  RUSH_HD Acc take(Acc acc, T x) const { return acc + NormSum<T>::magnitude(x); }
};
template <class T>
struct NormTwo : NormSum<T> {  // p = 2
  using Acc = typename NormSum<T>::Acc;
  RUSH_HD Acc take(Acc acc, T x) const {
    if constexpr (is_complex_v<T>) {
      return acc + norm(x);
    } else {
      return acc + x * x;
    }
  }
  RUSH_HD Acc result(Acc acc) const { return std::sqrt(acc); }
};
template <class T>
struct NormP : NormSum<T> {
  using Acc = typename NormSum<T>::Acc;
  Acc p;
  explicit NormP(Acc order) : p(order) {}
  RUSH_HD Acc take(Acc acc, T x) const { return acc + std::pow(NormSum<T>::magnitude(x), p); }
  RUSH_HD Acc result(Acc acc) const { return std::pow(acc, 1 / p); }
};
template <class T>
struct NormMax : NormSum<T> {  // p = inf
  using Acc = typename NormSum<T>::Acc;
  RUSH_HD Acc take(Acc acc, T x) const { return TakeMax()(acc, NormSum<T>::magnitude(x)); }
  RUSH_HD Acc combine(Acc a, Acc b) const { return TakeMax()(a, b); }
};
template <class T>
struct NormMin : NormSum<T> {  // p = -inf
  using Acc = typename NormSum<T>::Acc;
  RUSH_HD Acc identity() const { return highest_of<Acc>(); }
  RUSH_HD Acc take(Acc acc, T x) const { return TakeMin()(acc, NormSum<T>::magnitude(x)); }
  RUSH_HD Acc combine(Acc a, Acc b) const { return TakeMin()(a, b); }
};

// Mean and sum of squared deviations from it, kept in M; T is the element's type. One element at a time by Welford's
// update, two sets by Chan, Golub and LeVeque, "Updating formulae and a pairwise algorithm for computing sample
// variances" (1979), equations 1.3 to 2.1.
template <class T, class M = double>
struct Moments {
  using In = T;
  struct Acc {
    M count, mean, squares;
  };
  RUSH_HD Acc identity() const { return {0, 0, 0}; }
  RUSH_HD Acc take(Acc acc, In x) const {
    const M count = acc.count + 1, delta = x - acc.mean, mean = acc.mean + delta / count;
    return {count, mean, acc.squares + delta * (x - mean)};
  }
  RUSH_HD Acc combine(Acc a, Acc b) const {
    if (a.count == 0) return b;
    if (b.count == 0) return a;
    const M count = a.count + b.count, delta = b.mean - a.mean, share = b.count / count;
    return {count, a.mean + delta * share, a.squares + b.squares + delta * delta * a.count * share};
  }
  // The variance with `correction` taken off the count; NaN or infinite where nothing is left to divide by.
  RUSH_HD static double variance(Acc acc, double correction) {
    if (acc.count == 0) return std::numeric_limits<double>::quiet_NaN();
    return acc.squares / (acc.count > correction ? acc.count - correction : 0);
  }
};

}  // namespace rush::functors
