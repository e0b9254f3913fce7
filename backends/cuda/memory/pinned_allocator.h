// Memory of the host that does not move, which the GPU copies from and to by itself.
#pragma once
#include "core/device/allocator.h"
#include "core/device/stream.h"
#include "core/storage.h"

namespace rush::cuda {

// Note [Pinned memory]
// Pinning pages takes longer than copying them, so freed blocks are kept, in sizes that are powers of two. A copy that
// does not block leaves its event with the block (record_pinned_use); a freed block is handed out again only when its
// events are reached, so that the host may drop a tensor whose copy is still under way.
Allocator& pinned_allocator();
// The work that `stream` has now reads or writes the memory. Memory that is not the allocator's is left to its owner.
void record_pinned_use(const StorageImpl& storage, const Stream& stream);
// Whether the driver knows `data` as pinned memory, by this allocator or by other code.
bool is_pinned(const void* data);

}  // namespace rush::cuda
