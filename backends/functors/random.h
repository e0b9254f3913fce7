// Random numbers of many distributions from words of the stream. See Note [One random stream] in core/philox.h. M is
// the type that the computation is done in: float, or double for double results.
#pragma once
#include <cmath>
#include <cstdint>
#include <limits>

#include "core/macros.h"
#include "core/philox.h"

namespace rush::functors {

// Uniform in (0, 1] from the words of one element: (x + 1/2) 2^-32, or (x + 1/2) 2^-53 from the upper 53 bits.
RUSH_HD inline float positive_uniform(uint32_t word) { return std::fma(static_cast<float>(word), 0x1p-32f, 0x1p-33f); }
RUSH_HD inline double positive_uniform(uint64_t bits) { return (static_cast<double>(bits >> 11) + 0.5) * 0x1p-53; }

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
  RUSH_HD M operator()(M u) const { return u * (to - from) + from; }
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

// True with probability p: the word lies below p 2^32.
struct Bernoulli {
  uint64_t threshold;
  RUSH_HD explicit Bernoulli(double p) : threshold(static_cast<uint64_t>(p * 0x1p32)) {}
  RUSH_HD bool operator()(uint32_t word) const { return word < threshold; }
};

}  // namespace rush::functors
