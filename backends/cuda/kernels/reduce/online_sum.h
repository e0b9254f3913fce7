// The largest element and the sum of exp(x - largest) in one pass.
#pragma once
#include "backends/cuda/kernels/launch.h"
#include "backends/functors/reduce.h"

namespace rush::cuda {

// e^x, exact to rounding.
struct LibraryExp {
  template <class Real>
  __device__ static Real of(Real x) {
    return std::exp(x);
  }
};

// e^x by the hardware's approximation of 2^x, for sums over 16-bit numbers: its error is a thousandth of what these
// were rounded by. The library's takes several times as many instructions, and memory leaves time for few.
struct HardwareExp {
  __device__ static float of(float x) {
    float result;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x * 1.44269504f));
    return result;
  }
};

// Milakov and Gimelshein, "Online normalizer calculation for softmax" (2018): when a larger element comes, what was
// summed before is scaled down. Where the largest is infinite, `sum` is of no use. Of complex numbers the largest real
// part counts.
template <class T, class Exp = LibraryExp>
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
  // Takes vectors of elements, of real numbers T or narrower ones; what was summed before is scaled down once for all.
  template <class Element, int kVectors, int kLanes>
  __device__ Acc take(const Acc& acc, const Lanes<Element, kLanes> (&vectors)[kVectors]) const {
    T largest = acc.largest;
#pragma unroll
    for (int v = 0; v < kVectors; ++v) {
#pragma unroll
      for (int l = 0; l < kLanes; ++l) {
        largest = functors::TakeMax()(largest, static_cast<T>(vectors[v].lane[l]));
      }
    }
    // Against infinity less infinity, where all so far are -inf.
    const T from = largest == functors::lowest_of<T>() ? T(0) : largest;
    T sum = acc.sum * Exp::of(acc.largest - from);
#pragma unroll
    for (int v = 0; v < kVectors; ++v) {
#pragma unroll
      for (int l = 0; l < kLanes; ++l) sum += Exp::of(static_cast<T>(vectors[v].lane[l]) - from);
    }
    return {largest, sum};
  }
  __device__ Acc combine(const Acc& a, const Acc& b) const {
    const Real largest = functors::TakeMax()(a.largest, b.largest);
    return {largest, a.sum * T(scale(a.largest, largest)) + b.sum * T(scale(b.largest, largest))};
  }

 private:
  __device__ static Real scale(Real x, Real largest) { return x == largest ? Real(1) : Exp::of(x - largest); }
};

}  // namespace rush::cuda
