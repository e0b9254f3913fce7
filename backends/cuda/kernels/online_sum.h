// The largest element and the sum of exp(x - largest) in one pass.
#pragma once
#include "backends/functors/reduce.h"

namespace rush::cuda {

// Milakov and Gimelshein, "Online normalizer calculation for softmax" (2018): when a larger element comes, what was
// summed before is scaled down. Where the largest is infinite, `sum` is of no use. Of complex numbers the largest real
// part counts.
template <class T>
struct OnlineSum {
  using In = T;
  using Real = typename functors::RealPart<T>::type;
  struct Acc {
    Real largest;
    T sum;
  };
  __device__ Acc identity() const { return {functors::lowest_of<Real>(), T(0)}; }
  __device__ Acc take(const Acc& acc, T x) const {
    if constexpr (is_complex_v<T>) {
      if (std::isinf(x.real())) return combine(acc, {x.real(), T(1)});
      return combine(acc, {x.real(), exp(T(0, x.imag()))});
    } else {
      if (x <= acc.largest) return {acc.largest, acc.sum + scale(x, acc.largest)};
      return {x, acc.sum * scale(acc.largest, x) + T(1)};
    }
  }
  __device__ Acc combine(const Acc& a, const Acc& b) const {
    const Real largest = functors::TakeMax()(a.largest, b.largest);
    return {largest, a.sum * T(scale(a.largest, largest)) + b.sum * T(scale(b.largest, largest))};
  }

 private:
  __device__ static Real scale(Real x, Real largest) { return x == largest ? Real(1) : std::exp(x - largest); }
};

}  // namespace rush::cuda
