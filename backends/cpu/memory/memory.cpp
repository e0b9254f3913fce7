#include "backends/cpu/memory/memory.h"

#include "backends/cpu/memory/caching_allocator.h"

namespace rush::cpu {

void empty_cache() { CachingAllocator::instance().empty_cache(); }

int64_t memory_allocated() { return memory_stats().allocated; }
int64_t max_memory_allocated() { return memory_stats().max_allocated; }
int64_t memory_reserved() { return memory_stats().reserved; }
int64_t max_memory_reserved() { return memory_stats().max_reserved; }
MemoryStats memory_stats() { return CachingAllocator::instance().memory_stats(); }
void reset_peak_memory_stats() { CachingAllocator::instance().reset_peak_stats(); }

int64_t memory_limit() { return CachingAllocator::instance().memory_limit(); }
void set_per_process_memory_fraction(double fraction) {
  CachingAllocator::instance().blocks().set_memory_fraction(fraction);
}
double get_per_process_memory_fraction() { return CachingAllocator::instance().blocks().memory_fraction(); }

}  // namespace rush::cpu
