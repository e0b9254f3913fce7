// The small blocks that one thread keeps for itself.
#pragma once
#include <pthread.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>

#include "backends/cpu/memory/block_cache.h"
#include "core/macros.h"

namespace rush::cpu {

// Also holds its thread's counts since they were last added to the allocator's: a shared counter written at every call
// would cost as much as the rest of the call.
class ThreadCache {
 public:
  ThreadCache();
  ~ThreadCache();
  ThreadCache(const ThreadCache&) = delete;
  ThreadCache& operator=(const ThreadCache&) = delete;

  // A kept block of a small class; null when there is none.
  void* take(size_t index, size_t size) {
    List& list = lists_[index];
    void* data = list.blocks.pop(size);
    if (data) ++list.room;
    return data;
  }
  // False when enough are kept.
  bool give(void* data, size_t index, size_t size) {
    List& list = lists_[index];
    if (list.room == 0) return false;
    --list.room;
    list.blocks.push(data, size);
    return true;
  }

  void count(int64_t bytes, int64_t calls) {
    bytes_ += bytes;
    calls_ += calls;
    const int64_t limit = count_limit_.load(std::memory_order_relaxed);
    if (RUSH_UNLIKELY(bytes_ > limit || bytes_ < -limit)) flush();
  }
  void flush() noexcept;
  // Asks the thread, from another one, to give its blocks back to the system when it next counts something.
  void ask_to_empty() { count_limit_.store(kEmpty, std::memory_order_relaxed); }
  // Gives all blocks to the shared lists, or back to the system.
  enum class To { Shared, System };
  void drain(To to) noexcept;

  // All threads' caches; the allocator's lock protects it.
  ThreadCache* previous = nullptr;
  ThreadCache* next = nullptr;
  const pthread_t thread = ::pthread_self();

 private:
  static constexpr int64_t kCountLimit = static_cast<int64_t>(kSmall), kEmpty = -1;
  // Blocks of a class: at most 64, and 256 KiB.
  static constexpr uint32_t room_for(size_t index) {
    return static_cast<uint32_t>(std::min<size_t>(64, (size_t{256} << 10) / class_size(index)));
  }

  struct List {
    FreeList blocks;
    uint32_t room = 0;  // for more
  };

  std::array<List, kSmallClasses> lists_;
  int64_t bytes_ = 0, calls_ = 0;
  // Beyond it the counts are added to the allocator's. It is kEmpty when the cache shall be emptied: so the question
  // whether it shall costs nothing.
  std::atomic<int64_t> count_limit_{kCountLimit};
};

}  // namespace rush::cpu
