// Complex numbers of several lines in vector registers, and the butterflies (transforms of a few points) of them.
#pragma once
#include "backends/cpu/vec.h"
#include "core/macros.h"

namespace rush::cpu {

// Note [Lines side by side]
// A vector register holds one point of as many lines as it has lanes. Every step of a transform is then the same for
// all lanes, so that the code is that of one line, without shuffles, for any factors of n. The real and the imaginary
// parts are stored in two planes, [points][lanes] each: a product with a twiddle needs no shuffle, and the backward
// transform is the forward transform with the planes exchanged. load_lines and store_lines (fft_block.h) transpose
// squares in registers to move lines into planes and back.
template <class T>
inline constexpr int kFftLanes = kVectorBytes / sizeof(T);
template <class T>
struct FftVectorOf {
  typedef T type __attribute__((vector_size(kVectorBytes), may_alias));
};
template <class T>
using FftVector = typename FftVectorOf<T>::type;

template <class T>
struct FftPlanes {
  FftVector<T>* re;
  FftVector<T>* im;
  FftPlanes swapped() const { return {im, re}; }
};

template <class T>
struct Lanes {
  FftVector<T> re, im;
  RUSH_ALWAYS_INLINE friend Lanes operator+(const Lanes& a, const Lanes& b) { return {a.re + b.re, a.im + b.im}; }
  RUSH_ALWAYS_INLINE friend Lanes operator-(const Lanes& a, const Lanes& b) { return {a.re - b.re, a.im - b.im}; }
};

template <class T>
RUSH_ALWAYS_INLINE Lanes<T> operator*(const Lanes<T>& a, const Lanes<T>& b) {
  return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}
// a times re + i im
template <class T>
RUSH_ALWAYS_INLINE Lanes<T> times(const Lanes<T>& a, T re, T im) {
  return {a.re * re - a.im * im, a.re * im + a.im * re};
}
// -i a
template <class T>
RUSH_ALWAYS_INLINE Lanes<T> times_minus_i(const Lanes<T>& a) {
  return {a.im, -a.re};
}

// Each butterfly replaces x_k by the sum over j of x_j e^(-2 pi i jk/r), for the r points of x.
template <class T>
RUSH_ALWAYS_INLINE void butterfly2(Lanes<T>* x) {
  const Lanes<T> difference = x[0] - x[1];
  x[0] = x[0] + x[1];
  x[1] = difference;
}

template <class T>
RUSH_ALWAYS_INLINE void butterfly4(Lanes<T>& x0, Lanes<T>& x1, Lanes<T>& x2, Lanes<T>& x3) {
  const Lanes<T> a = x0 + x2, b = x0 - x2, c = x1 + x3, d = times_minus_i(x1 - x3);
  x0 = a + c;
  x1 = b + d;
  x2 = a - c;
  x3 = b - d;
}

// cos45: the root of 1/2.
template <class T>
RUSH_ALWAYS_INLINE void butterfly8(Lanes<T>* x, T cos45) {
  butterfly4(x[0], x[2], x[4], x[6]);
  butterfly4(x[1], x[3], x[5], x[7]);
  const Lanes<T> even[4] = {x[0], x[2], x[4], x[6]};
  const Lanes<T> odd[4] = {x[1],
                           {(x[3].re + x[3].im) * cos45, (x[3].im - x[3].re) * cos45},
                           times_minus_i(x[5]),
                           {(x[7].im - x[7].re) * cos45, (x[7].re + x[7].im) * -cos45}};
#pragma GCC unroll 4
  for (int k = 0; k < 4; ++k) {
    x[k] = even[k] + odd[k];
    x[k + 4] = even[k] - odd[k];
  }
}

// r is odd. Points j and r - j have the same cosine, and sines of opposite sign. roots[2 j] and roots[2 j + 1] are the
// cosine and the sine of 2 pi j/r. `folded` is scratch memory for r points.
template <class T>
RUSH_ALWAYS_INLINE void butterfly_odd(Lanes<T>* x, int r, const T* roots, Lanes<T>* folded) {
  const int half = (r - 1) / 2;
  Lanes<T>*sums = folded, *differences = folded + half;
  const Lanes<T> first = x[0];
#pragma GCC unroll 3
  for (int j = 0; j < half; ++j) {
    sums[j] = x[j + 1] + x[r - 1 - j];
    differences[j] = x[j + 1] - x[r - 1 - j];
    x[0] = x[0] + sums[j];
  }
#pragma GCC unroll 3
  for (int k = 1; k <= half; ++k) {
    Lanes<T> cosines = first, sines = {};
    int turn = 0;  // j k mod r
#pragma GCC unroll 3
    for (int j = 0; j < half; ++j) {
      turn += k;
      if (turn >= r) turn -= r;
      const T cosine = roots[2 * turn], sine = roots[2 * turn + 1];
      cosines = {cosines.re + sums[j].re * cosine, cosines.im + sums[j].im * cosine};
      sines = {sines.re + differences[j].re * sine, sines.im + differences[j].im * sine};
    }
    x[k] = cosines + times_minus_i(sines);
    x[r - k] = cosines - times_minus_i(sines);
  }
}

}  // namespace rush::cpu
