// The terms of p-norms: each takes |a - b|, adds it to what was summed so far, and finishes the sum.
#pragma once
#include <cmath>

#include "core/macros.h"

namespace rush::functors {

template <class T>
struct DistanceZero {  // how many differ
  RUSH_HD T add(T sum, T difference) const { return sum + static_cast<T>(difference != 0); }
  RUSH_HD T finish(T sum) const { return sum; }
};

template <class T>
struct DistanceOne {
  RUSH_HD T add(T sum, T difference) const { return sum + difference; }
  RUSH_HD T finish(T sum) const { return sum; }
};

template <class T>
struct DistanceTwo {
  RUSH_HD T add(T sum, T difference) const { return sum + difference * difference; }
  RUSH_HD T finish(T sum) const { return std::sqrt(sum); }
};

template <class T>
struct DistanceInfinity {  // the largest; a NaN stays
  RUSH_HD T add(T sum, T difference) const { return sum >= difference || sum != sum ? sum : difference; }
  RUSH_HD T finish(T sum) const { return sum; }
};

template <class T>
struct DistanceP {
  T p;
  RUSH_HD T add(T sum, T difference) const { return sum + std::pow(difference, p); }
  RUSH_HD T finish(T sum) const { return std::pow(sum, 1 / p); }
};

}  // namespace rush::functors
