#include "backends/cpu/caching_allocator.h"

#include <array>
#include <atomic>
#include <bit>
#include <cstdlib>
#include <mutex>
#include <utility>

#include "backends/cpu/register.h"
#include "core/error.h"

#if __has_include(<sys/mman.h>)
#include <sys/mman.h>
#endif

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#define RUSH_POISON(data, n) ASAN_POISON_MEMORY_REGION(data, n)
#define RUSH_UNPOISON(data, n) ASAN_UNPOISON_MEMORY_REGION(data, n)
// Kept blocks hang on links that lie in poisoned memory, where the leak check would not look by itself.
extern "C" const char* __lsan_default_options() { return "use_poisoned=1"; }  // NOLINT: the sanitizer's name
// A refused allocation is an OutOfMemoryError here too.
extern "C" const char* __asan_default_options() { return "allocator_may_return_null=1"; }  // NOLINT
#else
#define RUSH_POISON(data, n) ((void)(data), (void)(n))
#define RUSH_UNPOISON(data, n) ((void)(data), (void)(n))
#endif
#if defined(__SANITIZE_THREAD__)
extern "C" const char* __tsan_default_options() { return "allocator_may_return_null=1"; }  // NOLINT: as above
#endif

namespace rush::cpu {

// Classes 0..7 are 64, 128, ..., 512; then every doubling has eight: 576, 640, ..., 1024, 1152, ...
size_t size_class(size_t nbytes) {
  const size_t lines = (nbytes + 63) / 64;
  if (lines <= 8) return lines - 1;
  const size_t doubling = static_cast<size_t>(std::bit_width(lines - 1)) - 4;  // 0 for 9..16 lines
  const size_t step = (lines - 1) >> doubling;                                 // 8..15
  return 8 + doubling * 8 + (step - 8);
}

size_t class_size(size_t size_class) {
  if (size_class < 8) return (size_class + 1) * 64;
  const size_t doubling = (size_class - 8) / 8, step = (size_class - 8) % 8 + 9;
  return (step << doubling) * 64;
}

namespace {

constexpr size_t kSmallClasses = 8 + 7 * 8;  // up to 64 KiB
constexpr size_t kClasses = 8 + 56 * 8;

// A kept block; the link lies in its first bytes.
struct Block {
  Block* next;
};

struct FreeList {
  Block* head = nullptr;
  uint32_t count = 0;

  void push(void* data, size_t size) {
    RUSH_UNPOISON(data, sizeof(Block));
    auto* block = static_cast<Block*>(data);
    block->next = head;
    head = block;
    ++count;
    RUSH_POISON(data, size);
  }
  void* pop(size_t size) {
    if (!head) return nullptr;
    Block* block = head;
    RUSH_UNPOISON(block, size);
    head = block->next;
    --count;
    return block;
  }
};

class CachingAllocator final : public Allocator {
 public:
  void* allocate(size_t nbytes) override;
  void deallocate(void* data, size_t nbytes) noexcept override;
  Allocation allocate_on(Device, size_t nbytes) override { return {allocate(nbytes), nullptr}; }
  void deallocate(const Allocation& block, size_t nbytes) noexcept override { deallocate(block.data, nbytes); }
  AllocatorStats stats() const override;
  void empty_cache() override;

  void* take_central(size_t index);
  void give_central(void* data, size_t index) noexcept;
  void add_counts(int64_t bytes, int64_t calls) noexcept;

 private:
  void* from_system(size_t size, size_t nbytes);

  mutable std::mutex mutex_;
  std::array<FreeList, kClasses> lists_;
  std::atomic<int64_t> allocated_{0}, max_allocated_{0}, reserved_{0}, max_reserved_{0};
  std::atomic<int64_t> allocations_{0}, system_calls_{0};
};

// Never destroyed: tensors in static variables are freed after everything else.
CachingAllocator& instance() {
  static auto* allocator = new CachingAllocator;
  return *allocator;
}

// One thread's small blocks, and its counts since it last added them to the allocator's: a shared counter written at
// every call would cost as much as the rest of the call.
struct ThreadCache {
  std::array<FreeList, kSmallClasses> lists;
  int64_t bytes = 0, calls = 0;

  ~ThreadCache();
  void count(int64_t more_bytes, int64_t more_calls) {
    bytes += more_bytes;
    calls += more_calls;
    if (bytes > static_cast<int64_t>(kSmall) || bytes < -static_cast<int64_t>(kSmall)) flush();
  }
  void flush() { instance().add_counts(std::exchange(bytes, 0), std::exchange(calls, 0)); }
};
// Trivial, so that it can be asked after the cache itself is gone.
thread_local bool thread_ended = false;
thread_local ThreadCache thread_cache;

ThreadCache::~ThreadCache() {
  thread_ended = true;
  flush();
  for (size_t index = 0; index < lists.size(); ++index) {
    while (void* data = lists[index].pop(class_size(index))) instance().give_central(data, index);
  }
}

void raise_to(std::atomic<int64_t>& maximum, int64_t value) {
  int64_t seen = maximum.load(std::memory_order_relaxed);
  while (value > seen && !maximum.compare_exchange_weak(seen, value, std::memory_order_relaxed)) {
  }
}

void CachingAllocator::add_counts(int64_t bytes, int64_t calls) noexcept {
  raise_to(max_allocated_, allocated_.fetch_add(bytes, std::memory_order_relaxed) + bytes);
  allocations_.fetch_add(calls, std::memory_order_relaxed);
}

// Counts through the thread's cache while there is one.
void count(int64_t bytes, int64_t calls) {
  thread_ended ? instance().add_counts(bytes, calls) : thread_cache.count(bytes, calls);
}

void* CachingAllocator::allocate(size_t nbytes) {
  if (nbytes == 0) return nullptr;
  RUSH_CHECK_AS(OutOfMemoryError, nbytes < (size_t{1} << 60), "out of memory: asked for ", nbytes, " bytes on cpu");
  const size_t index = size_class(nbytes), size = class_size(index);
  void* data = nullptr;
  if (index < kSmallClasses && !thread_ended) data = thread_cache.lists[index].pop(size);
  if (!data) data = take_central(index);
  if (!data) data = from_system(size, nbytes);
  count(static_cast<int64_t>(nbytes), 1);
  RUSH_POISON(static_cast<char*>(data) + nbytes, size - nbytes);
  return data;
}

void CachingAllocator::deallocate(void* data, size_t nbytes) noexcept {
  if (!data) return;
  count(-static_cast<int64_t>(nbytes), 0);
  const size_t index = size_class(nbytes);
  if (index < kSmallClasses && !thread_ended && thread_cache.lists[index].count < kKept) {
    thread_cache.lists[index].push(data, class_size(index));
  } else {
    give_central(data, index);
  }
}

void* CachingAllocator::take_central(size_t index) {
  const std::lock_guard lock(mutex_);
  return lists_[index].pop(class_size(index));
}

void CachingAllocator::give_central(void* data, size_t index) noexcept {
  const std::lock_guard lock(mutex_);
  lists_[index].push(data, class_size(index));
}

// Large blocks lie on huge pages where the system has some: a product of matrices walks over more pages of 4 KiB than
// the processor keeps addresses of, and each costs a fault when it is first written.
void* allocate_pages(size_t size) {
#ifdef MADV_HUGEPAGE
  constexpr size_t kHugePage = size_t{2} << 20;
  if (size >= 2 * kHugePage) {
    const size_t whole_pages = (size + kHugePage - 1) / kHugePage * kHugePage;
    void* data = std::aligned_alloc(kHugePage, whole_pages);
    if (data) madvise(data, whole_pages, MADV_HUGEPAGE);  // advice: what the system makes of it is all the same
    return data;
  }
#endif
  return std::aligned_alloc(64, size);
}

void* CachingAllocator::from_system(size_t size, size_t nbytes) {
  void* data = allocate_pages(size);
  if (!data) {
    empty_cache();
    data = allocate_pages(size);
  }
  RUSH_CHECK_AS(OutOfMemoryError, data, "out of memory: could not allocate ", nbytes, " bytes on cpu; ",
                allocated_.load(), " bytes are in use by tensors");
  system_calls_.fetch_add(1, std::memory_order_relaxed);
  raise_to(max_reserved_, reserved_.fetch_add(static_cast<int64_t>(size)) + static_cast<int64_t>(size));
  return data;
}

void CachingAllocator::empty_cache() {
  const auto drain = [&](FreeList& list, size_t index) {
    while (void* data = list.pop(class_size(index))) {
      std::free(data);
      reserved_.fetch_sub(static_cast<int64_t>(class_size(index)));
    }
  };
  // Only this thread's small blocks can be reached from here.
  if (!thread_ended) {
    for (size_t index = 0; index < kSmallClasses; ++index) drain(thread_cache.lists[index], index);
  }
  const std::lock_guard lock(mutex_);
  for (size_t index = 0; index < kClasses; ++index) drain(lists_[index], index);
}

AllocatorStats CachingAllocator::stats() const {
  // Other threads may be up to kSmall bytes behind.
  if (!thread_ended) thread_cache.flush();
  AllocatorStats stats;
  stats.allocated = allocated_.load();
  stats.max_allocated = max_allocated_.load();
  stats.reserved = reserved_.load();
  stats.max_reserved = max_reserved_.load();
  stats.allocations = allocations_.load();
  stats.cache_hits = stats.allocations - system_calls_.load();
  return stats;
}

}  // namespace

void register_allocator() { set_allocator(kCPU, &instance()); }

}  // namespace rush::cpu
