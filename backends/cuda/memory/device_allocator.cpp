// Handing out and taking back. What happens when there is no free block is in device_allocator_growth.cpp; counts and
// records are in device_allocator_records.cpp.
#include "backends/cuda/memory/device_allocator.h"

#include <utility>

#include "core/error/error.h"

namespace rush::cuda {

DeviceAllocator::DeviceAllocator(int device, MemoryDriver& driver, const AllocatorConfig& config, StreamOrder* order)
    : device_(device), driver_(driver), config_(config), order_(config.debug ? order : nullptr) {}

size_t DeviceAllocator::round_size(size_t nbytes) {
  return nbytes < kMinBlock ? kMinBlock : (nbytes + kMinBlock - 1) / kMinBlock * kMinBlock;
}

Block* DeviceAllocator::allocate(size_t nbytes, void* stream, uint64_t group) {
  RUSH_CHECK_AS(OutOfMemoryError, nbytes < (size_t{1} << 60), "CUDA out of memory: tried to allocate ", nbytes,
                " bytes on cuda:", device_);
  const size_t size = round_size(nbytes);
  const Lock lock(mutex_);
  if (pending_count_ != 0 && capturing_ == 0) collect_reached();
  StreamPool& from = pool(stream, size <= kSmallSize, group);
  Block* block = take_free(from, size);
  if (RUSH_UNLIKELY(!block)) {
    if (config_.garbage_collection_threshold > 0 && capturing_ == 0) collect_garbage(segment_size(size));
    block = take_from_driver(from, size);
    if (!block) block = after_making_room(from, size);
    if (!block) throw_out_of_memory(nbytes, size);
  }
  return hand_out(block, size, nbytes);
}

StreamPool& DeviceAllocator::pool(void* stream, bool small, uint64_t group) {
  StreamPool*& last = last_pool_[small];
  if (RUSH_LIKELY(last && last->stream == stream && last->group == group)) return *last;
  for (const auto& each : pools_) {
    if (each->stream == stream && each->small == small && each->group == group) return *(last = each.get());
  }
  pools_.push_back(std::make_unique<StreamPool>(stream, small, group));
  return *(last = pools_.back().get());
}

Block* FreeBlocks::best_fit(size_t size) const {
  const size_t bin = bin_of(size);
  for (Block* block = heads_[bin]; block; block = block->next_free) {
    if (block->size >= size) return block;
  }
  return first_from(bin + 1);
}

// A free block for `size` bytes, off its list; null when there is none.
Block* DeviceAllocator::take_free(StreamPool& pool, size_t size) {
  Block* block = pool.free.best_fit(size);
  if (!block) return nullptr;
  // Blocks too large to be split are kept for requests that need them.
  if (size < config_.max_split_size && block->size >= config_.max_split_size) return nullptr;
  if (size >= config_.max_split_size && !block->expandable && block->size >= size + kLargeSegment) return nullptr;
  take_off_list(block);
  return block;
}

// Marks a block that is off its list as in use, and cuts off what is too much.
Block* DeviceAllocator::hand_out(Block* block, size_t size, size_t requested) {
  if (should_split(*block, size)) split(block, size);
  block->in_use = true;
  block->requested = requested;
  ++clock_;
  const bool small = block->pool->small;
  const auto bytes = static_cast<int64_t>(block->size);
  stats_.allocation.increase(small, 1);
  stats_.allocated_bytes.increase(small, bytes);
  stats_.active.increase(small, 1);
  stats_.active_bytes.increase(small, bytes);
  stats_.requested_bytes.increase(small, static_cast<int64_t>(requested));
  note_handed_out(*block);
  return block;
}

// For history, and in debug mode.
void DeviceAllocator::note_handed_out(Block& block) {
  if (RUSH_UNLIKELY(history_.enabled())) {
    block.trace = history_.capture();
    note(TraceEntry::Action::Alloc, block, block.size);
  }
  if (RUSH_UNLIKELY(order_)) report_early_reuse(block);
}

bool DeviceAllocator::should_split(const Block& block, size_t size) const {
  const size_t rest = block.size - size;
  if (block.pool->small || block.expandable) return rest >= kMinBlock;
  return size < config_.max_split_size && rest > kSmallSize;
}

// Leaves `size` bytes to the block and makes a free one of the rest.
void DeviceAllocator::split(Block* block, size_t size) {
  Block* rest = new_block();
  rest->data = block->data + size;
  rest->size = block->size - size;
  rest->pool = block->pool;
  rest->expandable = block->expandable;
  rest->mapped = block->mapped;
  rest->before = block;
  rest->after = block->after;
  if (rest->after) rest->after->before = rest;
  block->after = rest;
  block->size = size;
  rest->last_used = clock_;
  if (!rest->mapped) return;
  rest->pool->free.insert(rest);
  count_inactive_split(*rest, true);
}

void DeviceAllocator::deallocate(Block* block) noexcept {
  const Lock lock(mutex_);
  const bool small = block->pool->small;
  block->in_use = false;
  stats_.allocation.decrease(small, 1);
  stats_.allocated_bytes.decrease(small, static_cast<int64_t>(block->size));
  if (RUSH_UNLIKELY(history_.enabled())) note(TraceEntry::Action::FreeRequested, *block, block->size);
  if (RUSH_UNLIKELY(!block->streams.empty())) {
    if (order_) forget_recorded_uses(*block);
    if (capturing_ > 0) {
      block->pending_events = 1;  // stands for those that are recorded when the capture ends
      deferred_.push_back(block);
      return;
    }
    try {
      record_uses(block);
    } catch (const Error&) {
      // The driver is shutting down, or a kernel has failed for good. The block is never handed out again.
      block->pending_events = std::max(block->pending_events, 1);
    }
    return;
  }
  give_back(block);
}

// Puts a block that nobody uses any more among the free ones.
void DeviceAllocator::give_back(Block* block) {
  const bool small = block->pool->small;
  stats_.active.decrease(small, 1);
  stats_.active_bytes.decrease(small, static_cast<int64_t>(block->size));
  stats_.requested_bytes.decrease(small, static_cast<int64_t>(block->requested));
  note_given_back(*block);
  block->requested = 0;
  block->last_used = clock_;
  if (Block* before = block->before; before && before->is_free() && before->mapped) {
    take_off_list(before);
    absorb_next(before);
    block = before;
  }
  if (Block* after = block->after; after && after->is_free() && after->mapped) {
    take_off_list(after);
    absorb_next(block);
  }
  block->pool->free.insert(block);
  count_inactive_split(*block, true);
}

// For history, and in debug mode.
void DeviceAllocator::note_given_back(Block& block) {
  if (RUSH_UNLIKELY(history_.enabled())) {
    note(TraceEntry::Action::FreeCompleted, block, block.size);
    block.trace.reset();
  }
  // A graph would poison it again at each replay, even if another tensor owns it then.
  if (RUSH_UNLIKELY(config_.debug) && capturing_ == 0) poison(block);
}

void DeviceAllocator::take_off_list(Block* block) {
  block->pool->free.remove(block);
  count_inactive_split(*block, false);
}

// Makes one block of two neighbours, neither on a list. The lower one's record stays, so that a segment's first record
// never changes.
void DeviceAllocator::absorb_next(Block* block) {
  Block* next = block->after;
  block->size += next->size;
  block->after = next->after;
  if (block->after) block->after->before = block;
  recycle(next);
}

void DeviceAllocator::count_inactive_split(const Block& block, bool more) {
  if (block.is_whole_segment() || block.expandable) return;
  const bool small = block.pool->small;
  const auto bytes = static_cast<int64_t>(block.size);
  if (more) {
    stats_.inactive_split.increase(small, 1);
    stats_.inactive_split_bytes.increase(small, bytes);
  } else {
    stats_.inactive_split.decrease(small, 1);
    stats_.inactive_split_bytes.decrease(small, bytes);
  }
}

// ---- uses by other streams ----

void DeviceAllocator::record_stream(Block* block, void* stream) {
  const Lock lock(mutex_);
  if (stream == block->pool->stream) return;
  auto& streams = block->streams;
  if (std::find(streams.begin(), streams.end(), stream) == streams.end()) streams.push_back(stream);
}

// Puts an event at the end of each stream that used the block.
void DeviceAllocator::record_uses(Block* block) {
  for (void* stream : std::exchange(block->streams, {})) {
    void* event = driver_.record_event(stream);
    auto at = std::ranges::find(pending_, stream, &StreamUses::stream);
    if (at == pending_.end()) at = pending_.insert(pending_.end(), {stream, {}});
    at->uses.push_back({event, block});
    ++pending_count_;
    ++block->pending_events;
  }
}

void DeviceAllocator::collect_reached() {
  for (StreamUses& stream : pending_) {
    while (!stream.uses.empty() && driver_.reached(stream.uses.front().event)) {
      Block* block = stream.uses.front().block;
      stream.uses.pop_front();
      --pending_count_;
      if (--block->pending_events == 0) give_back(block);
    }
  }
}

void DeviceAllocator::wait_for_all() {
  for (StreamUses& stream : pending_) {
    for (; !stream.uses.empty(); stream.uses.pop_front()) {
      driver_.wait(stream.uses.front().event);
      Block* block = stream.uses.front().block;
      --pending_count_;
      if (--block->pending_events == 0) give_back(block);
    }
  }
}

void DeviceAllocator::set_capturing(bool capturing) {
  const Lock lock(mutex_);
  capturing_ += capturing ? 1 : -1;
  if (capturing_ > 0) return;
  for (Block* block : std::exchange(deferred_, {})) {
    block->pending_events = 0;
    record_uses(block);
  }
}

}  // namespace rush::cuda
