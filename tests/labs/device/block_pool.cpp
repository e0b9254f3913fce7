#include "tests/labs/device/block_pool.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>

namespace rush::labs {

BlockPool::Block* BlockPool::take_free(size_t size, size_t stream, uint64_t pool) {
  const auto fits = [&](const Block* block) {
    return block->size == size && block->stream == stream && block->pool == pool;
  };
  const auto found = std::find_if(free_.rbegin(), free_.rend(), fits);
  if (found == free_.rend()) return nullptr;
  Block* block = *found;
  free_.erase(std::next(found).base());
  ++stats_.cache_hits;
  return block;
}

void* BlockPool::allocate(size_t nbytes) {
  if (nbytes == 0) return nullptr;
  const std::lock_guard lock(streams_.mutex());
  collect_reached();
  const size_t size = std::bit_ceil(std::max<size_t>(nbytes, 64)), stream = is_pinned_ ? kHost : streams_.current();
  const uint64_t pool = current_recording && !is_pinned_ ? current_recording->pool : 0;
  ++stats_.allocations;
  stats_.allocated += static_cast<int64_t>(size);
  if (Block* block = take_free(size, stream, pool)) return block->data;
  void* data = std::aligned_alloc(64, size);
  RUSH_CHECK_AS(OutOfMemoryError, data, "the emulated accelerator: no memory for ", nbytes, " bytes");
  std::memset(data, 0xFF, size);
  stats_.reserved += static_cast<int64_t>(size);
  blocks_.push_back({data, size, stream, pool, 1, {}});
  by_address_[data] = &blocks_.back();
  return data;
}

void BlockPool::deallocate(void* data, size_t /*nbytes*/) noexcept {
  if (!data) return;
  const std::lock_guard lock(streams_.mutex());
  Block* block = by_address_.at(data);
  stats_.allocated -= static_cast<int64_t>(block->size);
  if (!retained_.count(block->pool)) block->pool = 0;
  if (block->pool == 0) ++block->use;
  if (block->users.empty()) return free_.push_back(block);
  waiting_.push_back({block, {}});
  if (!current_recording) mark_ends(waiting_.back());
}

void BlockPool::mark_ends(Waiting& waiting) {
  for (size_t user : waiting.block->users) {
    waiting.marks.push_back(streams_.record(std::make_shared<EventState>(), user));
  }
}

void BlockPool::collect_reached() {
  if (current_recording) return;
  std::erase_if(waiting_, [&](Waiting& waiting) {
    if (waiting.marks.empty()) mark_ends(waiting);
    const auto is_reached = [&](const Streams::Mark& mark) { return streams_.has_reached(mark); };
    if (!std::all_of(waiting.marks.begin(), waiting.marks.end(), is_reached)) return false;
    waiting.block->users.clear();
    free_.push_back(waiting.block);
    return true;
  });
}

bool BlockPool::contains(const void* data) const {
  const std::lock_guard lock(streams_.mutex());
  return by_address_.count(data) > 0;
}

void BlockPool::record_stream(const void* data, size_t stream) {
  const std::lock_guard lock(streams_.mutex());
  const auto found = by_address_.find(data);
  if (found != by_address_.end() && found->second->stream != stream) found->second->users.insert(stream);
}

uint64_t BlockPool::use_of(const void* data) const {
  const auto found = by_address_.find(data);
  return found == by_address_.end() ? 0 : found->second->use;
}

uint64_t BlockPool::pool_of(const void* data) const {
  const auto found = by_address_.find(data);
  return found == by_address_.end() ? 0 : found->second->pool;
}

void BlockPool::retain_pool(uint64_t pool) { ++retained_[pool]; }

void BlockPool::release_pool(uint64_t pool) {
  const std::lock_guard lock(streams_.mutex());
  if (--retained_[pool] > 0) return;
  retained_.erase(pool);
  for (Block* block : free_) {
    if (block->pool == pool) block->pool = 0;
  }
}

}  // namespace rush::labs
