// The emulated accelerator, a type of device whose memory is the host's and whose work runs when the host waits for it.
#pragma once
#include "core/device/device.h"
#include "tests/labs/device/block_pool.h"
#include "tests/labs/device/races.h"
#include "tests/labs/device/streams.h"

namespace rush::labs {

// The device "emulated:0", which is added at the first call. Its kernels are those of kernels.cpp.
Device emulated();

// Its parts.
Streams& streams();
RaceDetector& races();
BlockPool& device_memory();
BlockPool& pinned_memory();
// Of a block of either memory, as BlockPool::use_of.
uint64_t use_of(const void* block);

// The number of a stream; 0 is the default one.
size_t number_of(const Stream& stream);

// Sets the kernels of that type of device.
void set_kernels(DeviceType type);

}  // namespace rush::labs
