// What scans do with each element: see backends/functors/reduce.h for the parts of a functor.
#pragma once
#include <cmath>

#include "backends/functors/reduce.h"

namespace rush::functors {

// log(e^a + e^b). Where both real parts are one infinity the formula would be NaN.
template <class T>
RUSH_HD T log_add_exp(T a, T b) {
  if (is_nan(a) || is_nan(b)) return a + b;
  const T low = a < b ? a : b, high = a < b ? b : a;
  if (low == high && std::isinf(low)) return low;
  return high + std::log1p(std::exp(low - high));
}
template <class T>
RUSH_HD complex<T> log_add_exp(const complex<T>& a, const complex<T>& b) {
  if (is_nan(a) || is_nan(b)) return a + b;
  const bool ordered = a.real() < b.real();
  const complex<T> low = ordered ? a : b, high = ordered ? b : a;
  if (std::isinf(low.real()) && low.real() == high.real()) return low.real() < 0 ? low : log(exp(low) + exp(high));
  return high + log1p(exp(low - high));
}

template <class T>
struct LogCumSumExp {
  using In = T;
  using Acc = T;
  RUSH_HD Acc identity() const { return T(-std::numeric_limits<typename RealPart<T>::type>::infinity()); }
  RUSH_HD Acc take(Acc acc, In x) const { return log_add_exp(acc, x); }
  RUSH_HD T result(Acc acc) const { return acc; }
};

// Whether x takes the place of the largest or smallest so far: of equals the last one does, and so does the last NaN.
struct NotSmaller {
  template <class T>
  RUSH_HD bool operator()(T x, T best) const {
    return (x >= best) | (x != x);
  }
};
struct NotLarger {
  template <class T>
  RUSH_HD bool operator()(T x, T best) const {
    return (x <= best) | (x != x);
  }
};

}  // namespace rush::functors
