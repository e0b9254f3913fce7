// Sizes of memory.
#pragma once
#include <cstddef>

namespace rush::testing {

inline constexpr size_t kKiB = 1024, kMiB = 1024 * 1024;

}  // namespace rush::testing
