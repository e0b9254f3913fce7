// Whether cuSPARSELt is available, and its cache of plans, as in torch.backends.cusparselt. This header needs none of
// CUDA's.
#pragma once
#include <cstdint>

namespace rush::cuda::cusparselt {

// Whether this build has it and the current device is of compute capability 8.0 or newer.
bool is_available();
// Of the library, 800 for 0.8.0; 0 in a build without it. Throws CudaError without a device.
int64_t version();
// How many plans of products the current device keeps: one for each combination of sizes, dtype, layouts and bias, at
// most 1024 of them. A new one evicts the least recently used one.
int64_t plan_cache_size();
// Frees them, apart from those that a stream was captured with.
void clear_plan_cache();

}  // namespace rush::cuda::cusparselt
