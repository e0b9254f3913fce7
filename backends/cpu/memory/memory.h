// The memory of CPU tensors: the functions that cuda.h has for a GPU's.
#pragma once
#include <cstdint>

#include "core/device/allocator.h"

namespace rush::cpu {

/// Counts of the caching allocator since the process started; other threads may be up to 64 KiB behind.
struct MemoryStats : AllocatorStats {
  int64_t num_alloc_retries = 0;  ///< requests that were served only after all kept blocks had been given back
  int64_t num_ooms = 0;           ///< requests that failed
};

/// Returns to the system what is reserved and not in use. Other threads return the small blocks that they keep for
/// themselves, at most some MiB each, when they next allocate or free something.
void empty_cache();

/// Bytes. "Allocated" is what tensors hold, "reserved" adds what is kept for reuse.
int64_t memory_allocated();
int64_t max_memory_allocated();
int64_t memory_reserved();
int64_t max_memory_reserved();
MemoryStats memory_stats();
/// The maxima count again from what is in use now.
void reset_peak_memory_stats();

/// Bytes that this process may use: of the machine's memory, as far as its control groups (the limits of a container)
/// and setrlimit allow it; as found when the first tensor was made.
int64_t memory_limit();
/// The part of memory_limit(), in (0, 1], that this process may reserve for tensors; beyond it a request throws
/// OutOfMemoryError. 1, which is the default, leaves it to the system to refuse. Throws ValueError.
void set_per_process_memory_fraction(double fraction);
double get_per_process_memory_fraction();

}  // namespace rush::cpu
