#include "backends/cpu/memory/block_cache.h"

#include <algorithm>
#include <cstdlib>

#include "core/error/error.h"
#include "core/memory/memory_use.h"

#if __has_include(<malloc.h>)
#include <malloc.h>
#endif

namespace rush::cpu {

namespace {
using Lock = std::lock_guard<std::mutex>;

// What the system is asked for to serve `size`.
size_t system_size(size_t size) { return size <= kSmall ? size : (size + kHugePage - 1) / kHugePage * kHugePage; }

// Pages that malloc keeps among those in use.
void trim_malloc() noexcept {
#ifdef __GLIBC__
  ::malloc_trim(0);
#endif
}
}  // namespace

void* BlockCache::take(size_t size) {
  const Lock lock(mutex_);
  void* data = take_kept(size);
  if (!data) data = take_new(size);
  if (budget_.take(size)) release_beyond(budget_.allowed(0));
  return data;
}

// Takes the block off the lists, or cuts it from a range.
void* BlockCache::take_kept(size_t size) noexcept {
  void* data = nullptr;
  if (size <= kMedium) {
    List& list = lists_[size_class(size)];
    data = list.blocks.pop(size);
    list.used_at = budget_.volume();
  }
  if (!data && size > kSmall) data = ranges_.take(size);
  if (data) kept_ -= size;
  return data;
}

void* BlockCache::take_new(size_t size) {
  if (size > kSmall) {
    // Medium blocks that lie in lists may together be what is asked for.
    settle_medium();
    if (void* data = take_kept(size)) return data;
  }
  const size_t wanted = system_size(size);
  release_beyond(budget_.allowed(wanted) - wanted);
  void* data = fits(wanted) ? from_system(size) : nullptr;
  if (!data) {
    release(kept_);
    trim_malloc();
    data = fits(wanted) ? from_system(size) : nullptr;
    if (!data) throw_out_of_memory(size);
    ++stats_.retries;
  }
  ++stats_.system_calls;
  stats_.max_reserved = std::max(stats_.max_reserved, static_cast<int64_t>(reserved() + size));
  return data;
}

// Null when there is no more.
void* BlockCache::from_system(size_t size) noexcept {
  if (size <= kSmall) return std::aligned_alloc(64, size);
  const size_t mapped = system_size(size);
  if (!ranges_.grow(mapped, budget_.volume())) return nullptr;
  kept_ += mapped;
  return take_kept(size);
}

void BlockCache::give(void* data, size_t size) noexcept {
  const Lock lock(mutex_);
  budget_.give(size);
  kept_ += size;
  if (size <= kMedium) {
    List& list = lists_[size_class(size)];
    list.blocks.push(data, size);
    list.used_at = budget_.volume();
  } else {
    ranges_.put(static_cast<char*>(data), size, budget_.volume());
  }
}

void BlockCache::discard(void* data, size_t size) noexcept {
  const Lock lock(mutex_);
  budget_.give(size);
  std::free(data);
}

bool BlockCache::fits(size_t more) const { return most_reserved_ == 0 || reserved() + more <= most_reserved_; }

void BlockCache::throw_out_of_memory(size_t size) {
  ++stats_.out_of_memory;
  const std::string limit = most_reserved_ ? str(" (this process may reserve ", most_reserved_, ")") : std::string();
  RUSH_THROW(OutOfMemoryError, "out of memory: could not allocate ", size, " bytes on cpu", limit, "; ",
             budget_.in_use(), " bytes are in use by tensors, the process may use ", memory_limit_,
             detail::full_of(kCPU, static_cast<int64_t>(budget_.in_use())));
}

// ---- giving back ----

void BlockCache::empty() noexcept {
  const Lock lock(mutex_);
  release(kept_);
  trim_malloc();
}

// Gives back so much that at most `most` bytes are held, in use and kept together.
void BlockCache::release_beyond(size_t most) noexcept {
  if (reserved() > most) release(std::min(kept_, reserved() - most));
}

// Oldest first.
void BlockCache::release(size_t wanted) noexcept {
  settle_medium();
  while (wanted > 0) {
    size_t index = kSmallClasses;
    for (size_t i = 0; i < kSmallClasses; ++i) {
      const bool older = index == kSmallClasses || lists_[i].used_at < lists_[index].used_at;
      if (!lists_[i].blocks.empty() && older) index = i;
    }
    const std::optional<uint64_t> oldest_range = ranges_.oldest();
    const bool from_list = index < kSmallClasses && (!oldest_range || lists_[index].used_at <= *oldest_range);
    const size_t released = from_list ? release_from(lists_[index], index, wanted) : ranges_.release_oldest(wanted);
    if (released == 0) return;
    kept_ -= released;
    wanted -= std::min(wanted, released);
  }
}

size_t BlockCache::release_from(List& list, size_t index, size_t wanted) noexcept {
  const size_t size = class_size(index);
  size_t released = 0;
  for (void* data = nullptr; released < wanted && (data = list.blocks.pop(size)); released += size) std::free(data);
  return released;
}

// Medium blocks go back to the ranges that they were cut from.
void BlockCache::settle_medium() noexcept {
  bool any = false;
  for (size_t index = kSmallClasses; index < kListedClasses; ++index) {
    const size_t size = class_size(index);
    while (void* data = lists_[index].blocks.pop(size)) {
      ranges_.append(static_cast<char*>(data), size, lists_[index].used_at);
      any = true;
    }
  }
  if (any) ranges_.settle();
}

// ---- statistics and limits ----

BlockCacheStats BlockCache::stats() const {
  const Lock lock(mutex_);
  BlockCacheStats stats = stats_;
  stats.reserved = static_cast<int64_t>(reserved());
  return stats;
}

void BlockCache::reset_peak() noexcept {
  const Lock lock(mutex_);
  stats_.max_reserved = static_cast<int64_t>(reserved());
}

void BlockCache::set_memory_fraction(double fraction) {
  RUSH_CHECK_VALUE(fraction > 0 && fraction <= 1, "set_per_process_memory_fraction: expected a number in (0, 1], got ",
                   fraction);
  const Lock lock(mutex_);
  const auto most = static_cast<size_t>(fraction * static_cast<double>(memory_limit_));
  most_reserved_ = fraction == 1 ? 0 : most;
  budget_.set_memory_limit(most);
}

double BlockCache::memory_fraction() const {
  const Lock lock(mutex_);
  return most_reserved_ == 0 ? 1 : static_cast<double>(most_reserved_) / static_cast<double>(memory_limit_);
}

}  // namespace rush::cpu
