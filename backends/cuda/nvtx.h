// RUSH_NVTX=1: every operator that runs on a GPU is a range in Nsight's timelines.
#pragma once
#include <string_view>

#include "core/dispatch/op.h"

namespace rush::cuda {

// What begins a range and what ends it.
struct CallRanges {
  void (*begin)(std::string_view op);
  void (*end)() noexcept;
};
// NVTX's, where a test has not set others.
extern CallRanges call_ranges;

// The fallback of the key Profiler, see Note [Watching calls]: a call that a kernel of a GPU serves next is a range,
// also one that throws. Calls nest.
void mark_range(const OpBase& op, KeySet keys, Stack& stack);

}  // namespace rush::cuda
