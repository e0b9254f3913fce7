// The arithmetic of a gradient scaler.
#pragma once
#include <cstdint>

#include "core/macros.h"
#include "core/ops/optim/amp.h"

namespace rush::functors {

// Undoes the scale of one gradient, and returns whether it was finite. Math: float for the 16-bit types.
template <class Math>
struct Unscale {
  Math inv_scale;
  RUSH_HD bool operator()(Math& grad) const {
    const bool finite = grad - grad == Math(0);  // inf - inf and NaN - NaN are NaN
    grad *= inv_scale;
    return finite;
  }
};

// One step of a scale: s <- backoff s after a step that was skipped, growth s (if it is finite) after every
// interval-th in a row that was not.
struct UpdateScale {
  double growth, backoff;
  int64_t interval;

  explicit UpdateScale(const ScaleUpdate& u)
      : growth(u.growth_factor), backoff(u.backoff_factor), interval(u.growth_interval) {}

  RUSH_HD void operator()(float& scale, int32_t& tracker, float found_inf) const {
    if (found_inf != 0) {
      scale = static_cast<float>(scale * backoff);
      tracker = 0;
      return;
    }
    const int64_t clean = int64_t{tracker} + 1;
    tracker = clean == interval ? 0 : static_cast<int32_t>(clean);
    if (clean != interval) return;
    const float grown = static_cast<float>(scale * growth);
    if (grown - grown == 0) scale = grown;
  }
};

}  // namespace rush::functors
