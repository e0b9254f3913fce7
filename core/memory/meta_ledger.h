// What storages of the meta device tell the estimate that is being made: core/memory/estimate.h.
#pragma once
#include "core/storage.h"

namespace rush::detail {

/// Returns what the storage is known by afterwards; null while no estimate is made.
void* meta_made(const StorageImpl& storage);
void meta_claimed(const StorageImpl& storage, MemoryUse before, MemoryUse now);
void meta_freed(const StorageImpl& storage) noexcept;

}  // namespace rush::detail
