// The bins of a histogram.
#pragma once
#include <cmath>
#include <cstdint>

#include "core/macros.h"
#include "core/scalar_type.h"

namespace rush::functors {

// In which of `bins` equal parts of [low, high] a number lies, -1 for none; low is below high, both in Math. As in
// PyTorch's CPU kernel every step is rounded to the numbers' type, by which bins of 16-bit numbers differ, but where
// float16 overflows and where both ends would be rounded to the same.
template <class T>
class BinOf {
 public:
  using Math = opmath_t<T>;
  BinOf(double low, double high, int64_t bins)
      : low_(T(static_cast<Math>(low))), high_(T(static_cast<Math>(high))), bins_(bins) {
    if (low_ < high_ && std::isfinite(high_ - low_)) return;
    low_ = static_cast<Math>(low);
    high_ = static_cast<Math>(high);
  }

  RUSH_HD int64_t operator()(Math x) const {
    if (!(x >= low_ && x <= high_)) return -1;
    const T low(low_), high(high_), count(static_cast<Math>(bins_));
    Math place = (T(x) - low) * count / (high - low);
    if (!(place <= static_cast<Math>(bins_))) place = (x - low_) * static_cast<Math>(bins_) / (high_ - low_);
    const auto bin = static_cast<int64_t>(place);
    return bin < bins_ ? bin : bins_ - 1;
  }

 private:
  Math low_, high_;
  int64_t bins_;
};

}  // namespace rush::functors
