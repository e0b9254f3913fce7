#include "backends/cpu/memory/thread_cache.h"

#include <utility>

#include "backends/cpu/memory/caching_allocator.h"

namespace rush::cpu {

ThreadCache::ThreadCache() {
  for (size_t index = 0; index < kSmallClasses; ++index) lists_[index].room = room_for(index);
  CachingAllocator::instance().add(*this);
}

ThreadCache::~ThreadCache() {
  CachingAllocator::instance().remove(*this);
  flush();
  drain(To::Shared);
}

void ThreadCache::flush() noexcept {
  CachingAllocator::instance().add_counts(std::exchange(bytes_, 0), std::exchange(calls_, 0));
  if (count_limit_.load(std::memory_order_relaxed) != kEmpty) return;
  count_limit_.store(kCountLimit, std::memory_order_relaxed);
  drain(To::System);
}

void ThreadCache::drain(To to) noexcept {
  BlockCache& shared = CachingAllocator::instance().blocks();
  for (size_t index = 0; index < kSmallClasses; ++index) {
    const size_t size = class_size(index);
    while (void* data = take(index, size)) to == To::Shared ? shared.give(data, size) : shared.discard(data, size);
  }
}

}  // namespace rush::cpu
