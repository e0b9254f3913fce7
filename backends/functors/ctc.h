// The recursion of connectionist temporal classification: see Note [Forward and backward variables].
#pragma once
#include <cmath>
#include <cstdint>
#include <limits>

#include "core/macros.h"

namespace rush::functors {

// Note [Forward and backward variables]
// Between its labels, before and after them a sequence may have blanks: state s of 2 S + 1 stands for a blank when it
// is even and for label (s - 1) / 2 when it is odd. alpha(t, s) is the probability of all ways to be in state s at step
// t, beta(t, s) that of all ways on from there, step t counted in both. A way goes on in its state, to the next, or
// past a blank to a label that is not the one before (Graves et al., section 4.1). All stays in logarithms.

// The logarithm of zero.
template <class T>
RUSH_HD constexpr T ctc_never() {
  return -std::numeric_limits<T>::infinity();
}

template <class T>
RUSH_HD T ctc_log_sum(T a, T b, T c = ctc_never<T>()) {
  T largest = a > b ? a : b;
  largest = c > largest ? c : largest;
  if (largest == ctc_never<T>()) return largest;
  return std::log(std::exp(a - largest) + std::exp(b - largest) + std::exp(c - largest)) + largest;
}

// One sample's states and log-probabilities.
template <class T>
struct CtcSequence {
  const T* log_probs;  // of step 0; the next step is `stride` further
  const int64_t* labels;
  int64_t steps, states, stride, blank;

  RUSH_HD int64_t symbol(int64_t s) const { return s % 2 == 0 ? blank : labels[s / 2]; }
  RUSH_HD T log_prob(int64_t t, int64_t s) const { return log_probs[t * stride + symbol(s)]; }
  // Whether a way may go from state s to s + 2.
  RUSH_HD bool skips(int64_t s) const { return symbol(s) != symbol(s + 2); }

  // alpha(t, s) from alpha(t - 1, ...), which is `before`; step 0 has none.
  RUSH_HD T alpha(int64_t t, int64_t s, const T* before) const {
    if (t == 0) return s < 2 ? log_prob(0, s) : ctc_never<T>();
    const T next = s > 0 ? before[s - 1] : ctc_never<T>();
    const T skip = s > 1 && skips(s - 2) ? before[s - 2] : ctc_never<T>();
    return ctc_log_sum(before[s], next, skip) + log_prob(t, s);
  }
  // beta(t, s) from beta(t + 1, ...), which is `later`; the last step has none.
  RUSH_HD T beta(int64_t t, int64_t s, const T* later) const {
    if (t == steps - 1) return s >= states - 2 ? log_prob(t, s) : ctc_never<T>();
    const T next = s + 1 < states ? later[s + 1] : ctc_never<T>();
    const T skip = s + 2 < states && skips(s) ? later[s + 2] : ctc_never<T>();
    return ctc_log_sum(later[s], next, skip) + log_prob(t, s);
  }
  // The loss, given the last step's alpha.
  RUSH_HD T loss(const T* last) const {
    if (steps == 0) return states == 1 ? T(0) : -ctc_never<T>();
    return -ctc_log_sum(last[states - 1], states > 1 ? last[states - 2] : ctc_never<T>());
  }
};

}  // namespace rush::functors
