// Random numbers of many distributions from words of the stream. See Note [One random stream] in core/philox.h. M is
// the type that the computation is done in: float, or double for double results.
#pragma once
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "core/macros.h"
#include "core/philox.h"

namespace rush::functors {

// Uniform in (0, 1] from the words of one element: (x + 1/2) 2^-32, or (x + 1/2) 2^-53 from the upper 53 bits.
RUSH_HD inline float positive_uniform(uint32_t word) { return std::fma(static_cast<float>(word), 0x1p-32f, 0x1p-33f); }
RUSH_HD inline double positive_uniform(uint64_t bits) { return (static_cast<double>(bits >> 11) + 0.5) * 0x1p-53; }

// Note [Normal numbers of 16 bits]
// Most of the time of a normal number goes into its random bits. One of 16 bits has no use for a word of its own, so
// that a pair takes one word together: w is the radius' word, and w times the golden ratio modulo 2^32 the angle's.
// These 2^32 points, a Kronecker lattice, cover the square of radius and angle about as evenly as so many can; radius
// and angle alone take each of 2^32 values once, so that the tails reach as far as float's (6.7 deviations); and what
// one word is short of two, some 2^-16 along either side of the square, lies far below the rounding to 16 bits.
RUSH_HD constexpr uint32_t spread(uint32_t word) { return word * 0x9E3779B9; }

// How many words make two normal numbers of type T.
template <class T>
inline constexpr int kWordsOfNormalPair = sizeof(T) == 2 ? 1 : sizeof(T) / 2;

// The upper bound of what is drawn below `range`: floor(x range / 2^32), Lemire's multiplication ("Fast random integer
// generation in an interval", 2019) without its rejection, so that every element takes as many words.
RUSH_HD inline uint64_t below(uint32_t word, uint64_t range) { return word * range >> 32; }
RUSH_HD inline uint64_t below(uint64_t bits, uint64_t range) {
  __extension__ using Wide = unsigned __int128;
  return static_cast<uint64_t>(static_cast<Wide>(bits) * range >> 64);
}

template <class M>
struct Uniform {  // u in [0, 1) to [from, to)
  M from, to;
  // The explicit fma keeps the result the same whatever a compiler contracts.
  RUSH_HD M operator()(M u) const { return std::fma(u, to - from, from); }
};

// The same as an element of type T, from its words; rounding does not reach the end of the range.
template <class T, class M>
struct UniformOf {
  Uniform<M> scale;
  T first, end;
  UniformOf(double from, double to)
      : scale{static_cast<M>(from), static_cast<M>(to)}, first(scale.from), end(scale.to) {}
  RUSH_HD T inside(M value) const {
    const T rounded = static_cast<T>(value);
    return rounded < end ? rounded : first;
  }
  RUSH_HD T operator()(uint32_t word) const { return inside(static_cast<M>(scale(uniform_real<T>(word)))); }
  RUSH_HD T operator()(uint64_t bits) const { return inside(static_cast<M>(scale(uniform_real_double(bits)))); }
};

template <class M>
struct Normal {  // z normal with deviation 1
  M mean, std;
  RUSH_HD M operator()(M z) const { return z * std + mean; }
};

template <class M>
struct LogNormal {
  M mean, std;
  RUSH_HD M operator()(M z) const { return std::exp(z * std + mean); }
};

template <class M>
struct Exponential {  // -ln u / lambda. Never zero: a u that was rounded to 1 counts as 1 - epsilon / 2.
  M lambda;
  RUSH_HD M operator()(M u) const {
    const M drawn = u < M(1) ? -std::log(u) : std::numeric_limits<M>::epsilon() / 2;
    return drawn / lambda;
  }
};

template <class M>
struct Cauchy {  // median + sigma tan(pi (u - 1/2))
  M median, sigma;
  RUSH_HD M operator()(M u) const {
    return median + sigma * std::tan(static_cast<M>(3.14159265358979323846) * (u - M(0.5)));
  }
};

template <class M>
struct Geometric {  // the number of trials up to the first success: ceil(ln u / ln(1 - p)), at least 1
  M log_failure;
  RUSH_HD M operator()(M u) const {
    const M trials = std::ceil(std::log(u) / log_failure);
    return trials < M(1) ? M(1) : trials;
  }
};

// The same as an element of type T; what an integer type cannot hold becomes its largest.
template <class T, class M>
struct GeometricOf {
  Geometric<M> trials;
  RUSH_HD auto operator()(M u) const {
    const M drawn = trials(u);
    if constexpr (std::is_integral_v<T>) {
      constexpr T kLargest = std::numeric_limits<T>::max();
      return drawn < static_cast<M>(kLargest) ? static_cast<T>(drawn) : kLargest;
    } else {
      return drawn;
    }
  }
};

// base + a number below `range`, all 2^64 when it is 0. Added as unsigned numbers: the sum may pass through what int64
// cannot hold.
struct Integer {
  uint64_t base, range;
  RUSH_HD int64_t operator()(uint32_t word) const { return static_cast<int64_t>(base + below(word, range)); }
  RUSH_HD int64_t operator()(uint64_t bits) const {
    return static_cast<int64_t>(base + (range == 0 ? bits : below(bits, range)));
  }
};

// True with probability p: the word lies below p 2^32.
struct Bernoulli {
  uint64_t threshold;
  RUSH_HD explicit Bernoulli(double p) : threshold(static_cast<uint64_t>(p * 0x1p32)) {}
  RUSH_HD bool operator()(uint32_t word) const { return word < threshold; }
};

// A gradient that dropout let pass or not. It is multiplied either way, so that what is not finite becomes NaN.
template <class T>
struct DropoutBackward {
  T scale;
  RUSH_HD T operator()(T grad, bool kept) const { return grad * (kept ? scale : T(0)); }
};

}  // namespace rush::functors
