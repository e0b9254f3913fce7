// Tests of what only the caching allocator does: counting memory, keeping it, giving it out during a capture.
#pragma once
#include "backends/cuda/devices.h"
#include "backends/cuda/memory/allocator_config.h"

namespace rush::testing {

// With RUSH_CUDA_ALLOC_CONF=passthrough:True, as under compute-sanitizer, every block comes from the driver and goes
// back.
inline bool nothing_is_cached() { return !cuda::is_available() || cuda::AllocatorConfig::of_process().passthrough; }

}  // namespace rush::testing
