// The allocator behind CUDA tensors, as the rest of the backend uses it.
#pragma once
#include "backends/cuda/memory/device_allocator.h"
#include "core/allocator.h"
#include "core/storage.h"
#include "core/stream.h"

namespace rush::cuda {

// That of a device, made on first use and never destroyed.
DeviceAllocator& device_allocator(int device);

// See Tensor::record_stream. Memory that is not the allocator's is left to its owner.
void record_block_stream(const StorageImpl& storage, const Stream& stream);

// The private pool that this thread's allocations on a device come from, see MemPool.
struct ActivePool {
  int device = -1;
  uint64_t group = 0;
};
inline thread_local constinit ActivePool active_pool;

}  // namespace rush::cuda
