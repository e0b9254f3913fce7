// Ranges that a profiler shows for the calls of operators.
#pragma once
#include <string_view>

namespace rush::detail {

// begin(name) before and end() after each call that a CUDA kernel serves, also of one that throws; calls nest. Set by
// the CUDA backend, which also adds the CUDA key to devices_to_check.
struct CallRanges {
  void (*begin)(std::string_view op) = nullptr;
  void (*end)() noexcept = nullptr;
};
inline constinit CallRanges call_ranges;

}  // namespace rush::detail
