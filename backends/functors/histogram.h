// The bins of a histogram.
#pragma once
#include <cmath>
#include <cstdint>

#include "core/macros.h"
#include "core/scalar_type.h"

namespace rush::functors {

// In which of `bins` equal parts of [low, high] a number lies, -1 for none. As PyTorch's CPU kernel does, every step is
// rounded to the numbers' type, by which bins of 16-bit numbers differ, but where float16 overflows.
template <class T>
class BinOf {
 public:
  using Math = opmath_t<T>;
  BinOf(double low, double high, int64_t bins) : low_(rounded(low)), high_(rounded(high)), bins_(bins) {}

  RUSH_HD int64_t operator()(Math x) const {
    if (!(x >= low_ && x <= high_)) return -1;
    const T low(low_), high(high_), count(static_cast<Math>(bins_));
    Math place = (T(x) - low) * count / (high - low);
    if (!(place <= static_cast<Math>(bins_))) place = (x - low_) * static_cast<Math>(bins_) / (high_ - low_);
    const auto bin = static_cast<int64_t>(place);
    return bin < bins_ ? bin : bins_ - 1;
  }

 private:
  static Math rounded(double edge) {
    const Math number = T(static_cast<Math>(edge));
    return std::isfinite(number) ? number : static_cast<Math>(edge);
  }

  Math low_, high_;
  int64_t bins_;
};

}  // namespace rush::functors
