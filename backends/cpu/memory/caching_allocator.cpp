#include "backends/cpu/memory/caching_allocator.h"

#include <unistd.h>

#include <new>

#include "backends/cpu/memory/memory_limit.h"
#include "backends/cpu/memory/poison.h"
#include "backends/cpu/memory/thread_cache.h"
#include "backends/cpu/register.h"
#include "core/error/error.h"

#if defined(__SANITIZE_ADDRESS__)
// Kept blocks hang on links that lie in poisoned memory, where the leak check would not look by itself.
extern "C" const char* __lsan_default_options() { return "use_poisoned=1"; }  // NOLINT: the sanitizer's name
// A refused allocation is an OutOfMemoryError here too.
extern "C" const char* __asan_default_options() { return "allocator_may_return_null=1"; }  // NOLINT
#endif
#if defined(__SANITIZE_THREAD__)
extern "C" const char* __tsan_default_options() { return "allocator_may_return_null=1"; }  // NOLINT: as above
#endif

namespace rush::cpu {

namespace {

// Of this thread; null before its first allocation and once it ends. A plain pointer costs less to ask than the cache
// itself, of which the thread must know whether it was made.
thread_local constinit ThreadCache* own_cache = nullptr;
thread_local constinit bool thread_ended = false;

struct OwnCache : ThreadCache {
  OwnCache() { own_cache = this; }
  ~OwnCache() {
    own_cache = nullptr;
    thread_ended = true;
  }
};

// Null when the thread ends: its last blocks are freed after its cache is gone.
RUSH_NOINLINE ThreadCache* make_cache() noexcept {
  if (thread_ended) return nullptr;
  thread_local OwnCache cache;
  return &cache;
}

ThreadCache* cache_of_thread() noexcept { return RUSH_LIKELY(own_cache) ? own_cache : make_cache(); }

void raise_to(std::atomic<int64_t>& maximum, int64_t value) {
  int64_t seen = maximum.load(std::memory_order_relaxed);
  while (value > seen && !maximum.compare_exchange_weak(seen, value, std::memory_order_relaxed)) {
  }
}

}  // namespace

CachingAllocator& CachingAllocator::instance() {
  static auto* allocator = new CachingAllocator;
  return *allocator;
}

CachingAllocator::CachingAllocator()
    : memory_limit_(find_memory_limit()),
      blocks_(static_cast<size_t>(memory_limit_), static_cast<size_t>(::sysconf(_SC_PAGESIZE))) {
  if (::pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child) != 0) throw std::bad_alloc();
}

void* CachingAllocator::allocate(size_t nbytes) {
  if (nbytes == 0) return nullptr;
  if (nbytes <= kSmall) {
    const size_t index = size_class(nbytes), size = class_size(index);
    ThreadCache* cache = cache_of_thread();
    if (void* data = cache ? cache->take(index, size) : nullptr; RUSH_LIKELY(data)) {
      cache->count(static_cast<int64_t>(nbytes), 1);
      RUSH_POISON(static_cast<char*>(data) + nbytes, size - nbytes);
      return data;
    }
  }
  return allocate_shared(nbytes);
}

void* CachingAllocator::allocate_shared(size_t nbytes) {
  RUSH_CHECK_AS(OutOfMemoryError, nbytes < (size_t{1} << 60), "out of memory: asked for ", nbytes, " bytes on cpu");
  const size_t size = block_size(nbytes);
  void* data = blocks_.take(size);
  count(static_cast<int64_t>(nbytes), 1);
  RUSH_POISON(static_cast<char*>(data) + nbytes, size - nbytes);
  return data;
}

void CachingAllocator::deallocate(void* data, size_t nbytes) noexcept {
  if (!data) return;
  if (nbytes <= kSmall) {
    const size_t index = size_class(nbytes), size = class_size(index);
    if (ThreadCache* cache = cache_of_thread(); RUSH_LIKELY(cache && cache->give(data, index, size))) {
      cache->count(-static_cast<int64_t>(nbytes), 0);
      return;
    }
  }
  deallocate_shared(data, nbytes);
}

void CachingAllocator::deallocate_shared(void* data, size_t nbytes) noexcept {
  count(-static_cast<int64_t>(nbytes), 0);
  blocks_.give(data, block_size(nbytes));
}

// Counts through the thread's cache while there is one.
void CachingAllocator::count(int64_t bytes, int64_t calls) noexcept {
  ThreadCache* cache = cache_of_thread();
  cache ? cache->count(bytes, calls) : add_counts(bytes, calls);
}

void CachingAllocator::empty_cache() {
  {
    const std::lock_guard lock(threads_mutex_);
    for (ThreadCache* each = threads_; each; each = each->next) each->ask_to_empty();
  }
  if (own_cache) own_cache->flush();
  blocks_.empty();
}

// ---- threads ----

void CachingAllocator::add(ThreadCache& thread) noexcept {
  const std::lock_guard lock(threads_mutex_);
  thread.next = threads_;
  if (threads_) threads_->previous = &thread;
  threads_ = &thread;
}

void CachingAllocator::remove(ThreadCache& thread) noexcept {
  const std::lock_guard lock(threads_mutex_);
  (thread.previous ? thread.previous->next : threads_) = thread.next;
  if (thread.next) thread.next->previous = thread.previous;
}

void CachingAllocator::before_fork() {
  instance().threads_mutex_.lock();
  instance().blocks_.mutex().lock();
}

void CachingAllocator::after_fork_in_parent() {
  instance().blocks_.mutex().unlock();
  instance().threads_mutex_.unlock();
}

void CachingAllocator::after_fork_in_child() {
  ThreadCache* own = instance().threads_;
  while (own && !::pthread_equal(own->thread, ::pthread_self())) own = own->next;
  if (own) own->previous = own->next = nullptr;
  instance().threads_ = own;
  after_fork_in_parent();
}

// ---- statistics ----

void CachingAllocator::add_counts(int64_t bytes, int64_t calls) noexcept {
  raise_to(max_allocated_, allocated_.fetch_add(bytes, std::memory_order_relaxed) + bytes);
  allocations_.fetch_add(calls, std::memory_order_relaxed);
}

MemoryStats CachingAllocator::memory_stats() const {
  if (own_cache) own_cache->flush();
  const BlockCacheStats blocks = blocks_.stats();
  MemoryStats stats;
  stats.allocated = allocated_.load();
  stats.max_allocated = max_allocated_.load();
  stats.reserved = blocks.reserved;
  stats.max_reserved = blocks.max_reserved;
  stats.allocations = allocations_.load();
  stats.cache_hits = stats.allocations - blocks.system_calls;
  stats.num_alloc_retries = blocks.retries;
  stats.num_ooms = blocks.out_of_memory;
  return stats;
}

void CachingAllocator::reset_peak_stats() {
  if (own_cache) own_cache->flush();
  max_allocated_.store(allocated_.load());
  blocks_.reset_peak();
}

}  // namespace rush::cpu
