// The cache of cuFFT's plans, as torch.backends.cuda.cufft_plan_cache shows it. This header needs none of CUDA's.
#pragma once
#include <cstdint>

// Each device has a cache of its own; `device` -1 means the current one. All throw ValueError where there is no such
// device.
namespace rush::cuda::cufft_plan_cache {

int64_t size(int device = -1);
// How many there may be, 4096 unless set. A new one evicts the least recently used one.
int64_t max_size(int device = -1);
// With 0, every transform makes a new plan. Throws ValueError if negative.
void set_max_size(int64_t plans, int device = -1);
// Frees the plans and their tables in device memory, apart from those that a stream was captured with: graphs replay
// them.
void clear(int device = -1);

}  // namespace rush::cuda::cufft_plan_cache
