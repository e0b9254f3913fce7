// The allocator behind CUDA tensors, as the rest of the backend uses it.
#pragma once
#include "backends/cuda/memory/active_pool.h"
#include "backends/cuda/memory/device_allocator.h"
#include "core/device/allocator.h"
#include "core/device/stream.h"
#include "core/storage.h"

namespace rush::cuda {

// What serves all of them: by device, or straight from the driver where the process asked for that.
Allocator& caching_allocator();

// That of a device, made on first use and never destroyed.
DeviceAllocator& device_allocator(int device);

// See Tensor::record_stream. Memory that is not the allocator's is left to its owner.
void record_block_stream(const StorageImpl& storage, const Stream& stream);

// Whether tensors get their memory from these, not from an allocator of one's own or straight from the driver.
bool uses_caching_allocator();

// Begins Note [Blocks that are reused too early] where the process asked for it.
void watch_streams_if_asked();

}  // namespace rush::cuda
