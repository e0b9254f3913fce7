#pragma once
#include "backends/cuda/memory/memory.h"
#include "torch/types.h"

namespace rush::cuda::CUDACachingAllocator {
inline void emptyCache() { empty_cache(); }
inline Allocator* get() { return &allocator(kCUDA); }
}  // namespace rush::cuda::CUDACachingAllocator
