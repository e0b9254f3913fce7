// Values that are not finite, in double precision.
#pragma once
#include <limits>

namespace rush::testing {

inline constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
inline constexpr double kInf = std::numeric_limits<double>::infinity();

}  // namespace rush::testing
