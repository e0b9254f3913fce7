// The cache of freed blocks that all threads share.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>

#include "backends/cpu/memory/cache_budget.h"
#include "backends/cpu/memory/free_ranges.h"
#include "backends/cpu/memory/poison.h"
#include "backends/cpu/memory/size_class.h"

namespace rush::cpu {

// A list of the free blocks of one size class, which is linked through their first bytes.
class FreeList {
 public:
  bool empty() const { return !head_; }
  void push(void* data, size_t size) {
    RUSH_UNPOISON(data, sizeof(Link));
    auto* link = static_cast<Link*>(data);
    link->next = head_;
    head_ = link;
    RUSH_POISON(data, size);
  }
  void* pop(size_t size) {
    if (!head_) return nullptr;
    Link* link = head_;
    RUSH_UNPOISON(link, size);
    head_ = link->next;
    return link;
  }

 private:
  struct Link {
    Link* next;
  };
  Link* head_ = nullptr;
};

struct BlockCacheStats {
  int64_t reserved = 0, max_reserved = 0;
  int64_t system_calls = 0;  // requests that the system served
  int64_t retries = 0;       // those that it served only after all kept blocks had been given back
  int64_t out_of_memory = 0;
};

// Sizes are those of block_size(). What is kept is bounded: Note [What the CPU cache keeps].
class BlockCache {
 public:
  BlockCache(size_t memory_limit, size_t page) : memory_limit_(memory_limit), budget_(memory_limit), ranges_(page) {}

  // A block of `size` bytes. Throws OutOfMemoryError.
  void* take(size_t size);
  void give(void* data, size_t size) noexcept;
  // As give, for a small block that must go back to the system.
  void discard(void* data, size_t size) noexcept;
  // Gives all kept blocks back to the system.
  void empty() noexcept;

  BlockCacheStats stats() const;
  void reset_peak() noexcept;
  // Of the memory that the process may use, in (0, 1]; beyond it a request fails as if the system had no more.
  void set_memory_fraction(double fraction);
  double memory_fraction() const;

  // Held while the process forks, so that the child's copy is consistent.
  std::mutex& mutex() const { return mutex_; }

 private:
  struct List {
    FreeList blocks;
    uint64_t used_at = 0;
  };

  void* take_kept(size_t size) noexcept;
  void* take_new(size_t size);
  void* from_system(size_t size) noexcept;
  [[noreturn]] void throw_out_of_memory(size_t size);
  bool fits(size_t more) const;
  size_t reserved() const { return budget_.in_use() + kept_; }
  void release(size_t wanted) noexcept;
  void release_beyond(size_t most) noexcept;
  size_t release_from(List& list, size_t index, size_t wanted) noexcept;
  void settle_medium() noexcept;

  mutable std::mutex mutex_;
  size_t memory_limit_;
  size_t most_reserved_ = 0;  // by set_memory_fraction; 0: no limit
  CacheBudget budget_;
  std::array<List, kListedClasses> lists_;  // small ones, then medium ones
  FreeRanges ranges_;
  size_t kept_ = 0;  // bytes in lists and ranges
  BlockCacheStats stats_;
};

}  // namespace rush::cpu
