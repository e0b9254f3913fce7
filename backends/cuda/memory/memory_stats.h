// The caching allocator's counts: torch.cuda.memory_stats.
#pragma once
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

namespace rush::cuda {

struct Stat {
  int64_t current = 0, peak = 0;
  int64_t allocated = 0, freed = 0;  // totals of what went up and down

  void increase(int64_t amount) {
    current += amount;
    peak = std::max(peak, current);
    allocated += amount;
  }
  void decrease(int64_t amount) {
    current -= amount;
    freed += amount;
  }
};

// One count of all blocks, of small ones and of large ones.
struct StatByPool {
  Stat all, small_pool, large_pool;

  void increase(bool small, int64_t amount) {
    all.increase(amount);
    (small ? small_pool : large_pool).increase(amount);
  }
  void decrease(bool small, int64_t amount) {
    all.decrease(amount);
    (small ? small_pool : large_pool).decrease(amount);
  }
  void reset_peak() {
    for (Stat* stat : {&all, &small_pool, &large_pool}) stat->peak = stat->current;
  }
  void reset_accumulated() {
    for (Stat* stat : {&all, &small_pool, &large_pool}) stat->allocated = stat->freed = 0;
  }
};

// Those in bytes, then those in numbers. "Allocated" is what tensors hold, rounded up; "requested" is what they asked
// for; "active" adds blocks that wait for another stream; "reserved" is what the driver gave; "inactive split" are free
// blocks of segments that are partly in use and therefore cannot be returned to the driver.
struct MemoryStats {
  StatByPool allocated_bytes, requested_bytes, active_bytes, reserved_bytes, inactive_split_bytes;
  StatByPool allocation, active, segment, inactive_split;
  int64_t num_alloc_retries = 0;  // requests that were served only after cached blocks had been returned
  int64_t num_ooms = 0;
  int64_t num_device_alloc = 0;  // calls of the driver
  int64_t num_device_free = 0;

  template <class F>
  void for_each(F&& apply) {
    for (StatByPool* stat : {&allocated_bytes, &requested_bytes, &active_bytes, &reserved_bytes, &inactive_split_bytes,
                             &allocation, &active, &segment, &inactive_split}) {
      apply(*stat);
    }
  }
};

}  // namespace rush::cuda
