// The allocator behind CPU tensors.
#pragma once
#include <atomic>
#include <mutex>

#include "backends/cpu/memory/block_cache.h"
#include "backends/cpu/memory/memory.h"
#include "core/device/allocator.h"

namespace rush::cpu {

class ThreadCache;

// Note [The CPU caching allocator]
// Fresh pages cost more than the arithmetic on them: the kernel zeroes each one at its first touch. So freed blocks are
// kept and handed out again, and given back only when they are more than the program is likely to need again: Note
// [What the CPU cache keeps].
//   - Small blocks, up to 64 KiB, are malloc's. Sizes are rounded up to classes, eight for each doubling, which wastes
//     at most an eighth. Each thread keeps some of each class in lists of its own, which take no lock (ThreadCache).
//     When such a list is full, and when its thread ends, blocks move to the lists that all threads share (BlockCache).
//   - Medium blocks, up to 1 MiB, have classes and shared lists too, but are cut from pages that are mapped for them.
//   - Larger blocks, in multiples of 64 KiB, are cut from the smallest range of free pages that is large enough, and
//     merge with their neighbours when they are freed (FreeRanges), so that a block serves requests of other sizes.
//     When no range is large enough, the medium lists are emptied into the ranges; only then does the system map new
//     pages.
//   - When the system has no more memory, all that is kept is given back and the request is tried again; then comes an
//     OutOfMemoryError, after which everything goes on to work.
// Neither freeing nor giving back needs memory. A child of fork() finds the shared lists whole, and its own thread's;
// what other threads of its parent kept stays unused there.
//
// Under AddressSanitizer kept memory is poisoned, and so is the slack of a block in use, so that reading a freed tensor
// or past the end of one is reported as with plain malloc.
class CachingAllocator final : public Allocator {
 public:
  // That of this process, made on first use and never destroyed: tensors in static variables are freed after everything
  // else.
  static CachingAllocator& instance();

  void* allocate(size_t nbytes) override;
  void deallocate(void* data, size_t nbytes) noexcept override;
  Allocation allocate_on(Device, size_t nbytes) override { return {allocate(nbytes), nullptr}; }
  void deallocate(const Allocation& block, size_t nbytes) noexcept override { deallocate(block.data, nbytes); }
  AllocatorStats stats() const override { return memory_stats(); }
  void empty_cache() override;

  MemoryStats memory_stats() const;
  void reset_peak_stats();
  int64_t memory_limit() const { return memory_limit_; }
  BlockCache& blocks() { return blocks_; }

  // What threads tell of themselves.
  void add(ThreadCache& thread) noexcept;
  void remove(ThreadCache& thread) noexcept;
  void add_counts(int64_t bytes, int64_t calls) noexcept;

 private:
  CachingAllocator();
  void* allocate_shared(size_t nbytes);
  void deallocate_shared(void* data, size_t nbytes) noexcept;
  void count(int64_t bytes, int64_t calls) noexcept;
  // Around fork(): the child's copies of the locks are free, and its list of threads holds its only one.
  static void before_fork();
  static void after_fork_in_parent();
  static void after_fork_in_child();

  const int64_t memory_limit_;
  BlockCache blocks_;
  std::atomic<int64_t> allocated_{0}, max_allocated_{0}, allocations_{0};

  std::mutex threads_mutex_;  // taken before that of blocks_
  ThreadCache* threads_ = nullptr;
};

}  // namespace rush::cpu
