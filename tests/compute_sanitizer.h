// What tests leave out when NVIDIA's compute-sanitizer watches their kernels.
#pragma once
#include <algorithm>
#include <cstdlib>

namespace rush::testing {

// tools/check_kernels says so. A launch takes a millisecond then, and kernels that were watched once show nothing new.
inline bool under_compute_sanitizer() { return std::getenv("RUSH_COMPUTE_SANITIZER") != nullptr; }

// A chain of operators so long that what walks it must not call itself: a matter of the host alone.
inline int length_of_long_chain(int operators) { return under_compute_sanitizer() ? 100 : operators; }

}  // namespace rush::testing
