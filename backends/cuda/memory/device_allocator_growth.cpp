// Segments: taking them from the driver, returning them, and what happens when there is no more memory.
#include <algorithm>
#include <utility>

#include "backends/cuda/memory/device_allocator.h"
#include "core/error/error.h"
#include "core/memory/memory_use.h"

namespace rush::cuda {

size_t DeviceAllocator::segment_size(size_t size) {
  if (size <= kSmallSize) return kSmallSegment;
  if (size < kMinLargeAllocation) return kLargeSegment;
  return (size + kRoundLarge - 1) / kRoundLarge * kRoundLarge;
}

bool DeviceAllocator::fits_limit(size_t more) const {
  return limit_ == 0 || static_cast<size_t>(stats_.reserved_bytes.all.current) + more <= limit_;
}

// A block of at least `size` bytes that is on no list; null when the driver has none.
Block* DeviceAllocator::take_from_driver(StreamPool& pool, size_t size) {
  if (config_.expandable_segments) return grow_expandable(pool, size);
  const size_t nbytes = segment_size(size);
  if (!fits_limit(nbytes)) return nullptr;
  void* data = driver_.allocate(nbytes);
  if (!data) return nullptr;
  Block* block = new_block();
  block->data = static_cast<char*>(data);
  block->size = nbytes;
  block->pool = &pool;
  segments_.push_back(block);
  stats_.segment.increase(pool.small, 1);
  stats_.reserved_bytes.increase(pool.small, static_cast<int64_t>(nbytes));
  ++stats_.num_device_alloc;
  if (history_.enabled()) note(TraceEntry::Action::SegmentAlloc, *block, nbytes);
  return block;
}

// The driver has no more: returns to it what is enough, at last everything that is free, and asks again.
Block* DeviceAllocator::after_making_room(StreamPool& pool, size_t size) {
  ++stats_.num_alloc_retries;
  // While a graph is captured nothing may wait for the device, as returning a segment does.
  if (capturing_ > 0) return nullptr;
  if (release_large_enough(pool, size)) {
    if (Block* block = take_from_driver(pool, size)) return block;
  }
  release_cached();
  // What other streams were done with has come back to the lists.
  if (Block* block = take_free(pool, size)) return block;
  return take_from_driver(pool, size);
}

void DeviceAllocator::throw_out_of_memory(size_t requested, size_t size) {
  ++stats_.num_ooms;
  size_t largest = 0;
  for (const auto& pool : pools_) {
    for (const Block* block = pool->free.smallest(); block; block = pool->free.next(block)) {
      largest = std::max(largest, block->size);
    }
  }
  const MemoryInfo info = driver_.info();
  if (history_.enabled()) {
    Block none;
    none.pool = pools_.front().get();
    none.data = reinterpret_cast<char*>(info.free);  // in place of an address: see write_entry in snapshot_pickle.cpp
    note(TraceEntry::Action::Oom, none, size);
  }
  const std::string limit = limit_ ? str(" (this process may reserve ", limit_, ")") : std::string();
  RUSH_THROW(OutOfMemoryError, "CUDA out of memory: tried to allocate ", requested, " bytes on cuda:", device_,
             "; the device has ", info.total, " bytes", limit, ", ", info.free, " of them free; tensors hold ",
             stats_.allocated_bytes.all.current, ", this process has reserved ", stats_.reserved_bytes.all.current,
             ", the largest free block of these is ", largest,
             rush::detail::full_of(Device(kCUDA, device_), stats_.allocated_bytes.all.current));
}

// ---- returning segments ----

void DeviceAllocator::empty_cache() {
  const Lock lock(mutex_);
  if (capturing_ == 0) release_cached();
}

// Segments of a live private pool stay: a graph may be replayed into them.
bool DeviceAllocator::releasable(const StreamPool& pool) const {
  return pool.group == 0 || std::find(groups_.begin(), groups_.end(), pool.group) == groups_.end();
}

void DeviceAllocator::release_cached() {
  wait_for_all();
  for (const auto& pool : pools_) {
    if (releasable(*pool)) release_free_segments(*pool);
  }
}

void DeviceAllocator::release_free_segments(StreamPool& pool) {
  for (Block* block = pool.free.smallest(); block;) {
    Block* next = pool.free.next(block);
    if (block->is_driver_allocation()) release_segment(block);
    block = next;
  }
  unmap_free_chunks(pool);
}

// Returns to the driver a segment that is one free block.
void DeviceAllocator::release_segment(Block* block) {
  block->pool->free.remove(block);
  if (history_.enabled()) note(TraceEntry::Action::SegmentFree, *block, block->size);
  driver_.free(block->data);
  if (order_) foreign_uses_.forget(block->data, block->data + block->size);
  const bool small = block->pool->small;
  stats_.segment.decrease(small, 1);
  stats_.reserved_bytes.decrease(small, static_cast<int64_t>(block->size));
  ++stats_.num_device_free;
  segments_.erase(std::find(segments_.begin(), segments_.end(), block));
  recycle(block);
}

// With a limit on splitting, large blocks stay whole: gives back one that is large enough, or the largest ones until
// together they are. Whether that was possible.
bool DeviceAllocator::release_large_enough(StreamPool& pool, size_t size) {
  if (config_.max_split_size == AllocatorConfig().max_split_size || size < kMinLargeAllocation) return false;
  const size_t wanted = std::max(size, config_.max_split_size);
  Block* block = pool.free.best_fit(wanted);
  while (block && !block->is_driver_allocation()) block = pool.free.next(block);
  if (block) {
    release_segment(block);
    return true;
  }
  size_t released = 0;
  while (released < size) {
    Block* largest = nullptr;
    for (Block* each = pool.free.best_fit(std::min(config_.max_split_size, size)); each; each = pool.free.next(each)) {
      if (each->is_driver_allocation()) largest = each;
    }
    if (!largest || largest->size < config_.max_split_size) return false;
    released += largest->size;
    release_segment(largest);
  }
  return true;
}

// Keeps what is reserved below the threshold by returning free segments, those unused for longest first.
void DeviceAllocator::collect_garbage(size_t wanted) {
  if (limit_ == 0 && total_memory_ == 0) total_memory_ = driver_.info().total;
  const auto allowed = static_cast<double>(limit_ ? limit_ : total_memory_);
  const auto threshold = static_cast<int64_t>(config_.garbage_collection_threshold * allowed);
  int64_t excess = stats_.reserved_bytes.all.current + static_cast<int64_t>(wanted) - threshold;
  if (excess <= 0) return;
  while (excess > 0) {
    Block* oldest = nullptr;
    for (const auto& pool : pools_) {
      if (pool->small || !releasable(*pool)) continue;
      for (Block* block = pool->free.smallest(); block; block = pool->free.next(block)) {
        if (!block->is_driver_allocation()) continue;
        if (!oldest || block->last_used < oldest->last_used) oldest = block;
      }
    }
    if (!oldest) return;
    excess -= static_cast<int64_t>(oldest->size);
    release_segment(oldest);
  }
}

// ---- limits and private pools ----

void DeviceAllocator::set_memory_fraction(double fraction) {
  RUSH_CHECK_VALUE(fraction > 0 && fraction <= 1, "set_per_process_memory_fraction: expected a number in (0, 1], got ",
                   fraction);
  const Lock lock(mutex_);
  total_memory_ = driver_.info().total;
  limit_ = fraction == 1 ? 0 : static_cast<size_t>(fraction * static_cast<double>(total_memory_));
}

double DeviceAllocator::memory_fraction() const {
  const Lock lock(mutex_);
  return limit_ == 0 ? 1 : static_cast<double>(limit_) / static_cast<double>(total_memory_);
}

void DeviceAllocator::make_group(uint64_t group) {
  const Lock lock(mutex_);
  groups_.push_back(group);
}

void DeviceAllocator::release_group(uint64_t group) {
  const Lock lock(mutex_);
  const auto owner = std::find(groups_.begin(), groups_.end(), group);
  if (owner != groups_.end()) groups_.erase(owner);
  // Another owner may be left. During a capture the segments stay until the cache is emptied.
  if (capturing_ > 0 || std::find(groups_.begin(), groups_.end(), group) != groups_.end()) return;
  for (const auto& pool : pools_) {
    if (pool->group == group) release_free_segments(*pool);
  }
}

}  // namespace rush::cuda
