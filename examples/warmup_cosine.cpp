#include "examples/warmup_cosine.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace examples {

double WarmupCosine::operator()(int64_t iteration) const {
  const auto now = static_cast<double>(iteration), rise = static_cast<double>(warmup_iters);
  if (now < rise) return (now + 1) / (rise + 1);
  const double fall = static_cast<double>(decay_iters) - rise;
  const double part = fall > 0 ? std::min((now - rise) / fall, 1.0) : 1;
  return lowest + (1 - lowest) * (1 + std::cos(std::numbers::pi * part)) / 2;
}

}  // namespace examples
