// Losses of one element x of the input against y of the target, and their derivatives with respect to x.
#pragma once
#include <cmath>

#include "core/macros.h"

namespace rush::functors {

template <class T>
struct MseLoss {
  RUSH_HD T operator()(T x, T y) const { return (x - y) * (x - y); }
  RUSH_HD T derivative(T x, T y) const { return 2 * (x - y); }
};

// |d| - beta / 2, and d^2 / (2 beta) for |d| < beta, d being x - y.
template <class T>
struct SmoothL1Loss {
  T beta;
  RUSH_HD T operator()(T x, T y) const {
    const T size = std::abs(x - y);
    return size < beta ? T(0.5) * size * size / beta : size - T(0.5) * beta;
  }
  RUSH_HD T derivative(T x, T y) const {
    const T d = x - y;
    const T sign = d > 0 ? T(1) : d < 0 ? T(-1) : d;
    return std::abs(d) < beta ? d / beta : sign;
  }
};

// delta (|d| - delta / 2), and d^2 / 2 for |d| <= delta.
template <class T>
struct HuberLoss {
  T delta;
  RUSH_HD T operator()(T x, T y) const {
    const T size = std::abs(x - y);
    return size <= delta ? T(0.5) * size * size : delta * (size - T(0.5) * delta);
  }
  RUSH_HD T derivative(T x, T y) const {
    const T d = x - y;
    return d <= -delta ? -delta : d >= delta ? delta : d;
  }
};

// -(y log x + (1 - y) log(1 - x)), with logarithms of at least -100 so that a wrong certainty stays finite.
template <class T>
struct BinaryCrossEntropy {
  RUSH_HD T operator()(T x, T y) const {
    const T log_x = std::log(x), log_rest = std::log1p(-x);
    return (y - 1) * (log_rest < -100 ? T(-100) : log_rest) - y * (log_x < -100 ? T(-100) : log_x);
  }
  RUSH_HD T derivative(T x, T y) const {
    const T spread = (1 - x) * x;
    return (x - y) / (spread < T(1e-12) ? T(1e-12) : spread);
  }
};

}  // namespace rush::functors
