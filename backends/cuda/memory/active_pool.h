// The private pool that a thread's memory comes from.
#pragma once
#include <cstdint>

namespace rush::cuda {

// For this thread's allocations on a device, see MemPool; group 0 is the common pool.
struct ActivePool {
  int device = -1;
  uint64_t group = 0;
};
inline thread_local constinit ActivePool active_pool;

}  // namespace rush::cuda
