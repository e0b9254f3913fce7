#include "backends/cuda/memory/memory.h"

#include <atomic>

#include "backends/cuda/devices.h"
#include "backends/cuda/memory/caching_allocator.h"

namespace rush::cuda {

namespace {
DeviceAllocator& of(int device) { return device_allocator(concrete_device(Device(kCUDA, device)).index); }
}  // namespace

void empty_cache() {
  if (is_available()) allocator(kCUDA).empty_cache();
}

int64_t memory_allocated(int device) { return memory_stats(device).allocated_bytes.all.current; }
int64_t max_memory_allocated(int device) { return memory_stats(device).allocated_bytes.all.peak; }
int64_t memory_reserved(int device) { return memory_stats(device).reserved_bytes.all.current; }
int64_t max_memory_reserved(int device) { return memory_stats(device).reserved_bytes.all.peak; }
MemoryStats memory_stats(int device) { return of(device).stats(); }

std::map<std::string, int64_t> memory_stats_by_name(int device) {
  const MemoryStats stats = memory_stats(device);
  std::map<std::string, int64_t> named;
  const auto add = [&](const std::string& name, const StatByPool& by_pool) {
    for (const auto& [pool, stat] : {std::pair{".all", &by_pool.all}, std::pair{".small_pool", &by_pool.small_pool},
                                     std::pair{".large_pool", &by_pool.large_pool}}) {
      named[name + pool + ".current"] = stat->current;
      named[name + pool + ".peak"] = stat->peak;
      named[name + pool + ".allocated"] = stat->allocated;
      named[name + pool + ".freed"] = stat->freed;
    }
  };
  add("allocated_bytes", stats.allocated_bytes);
  add("requested_bytes", stats.requested_bytes);
  add("active_bytes", stats.active_bytes);
  add("reserved_bytes", stats.reserved_bytes);
  add("inactive_split_bytes", stats.inactive_split_bytes);
  add("allocation", stats.allocation);
  add("active", stats.active);
  add("segment", stats.segment);
  add("inactive_split", stats.inactive_split);
  named["num_alloc_retries"] = stats.num_alloc_retries;
  named["num_ooms"] = stats.num_ooms;
  named["num_device_alloc"] = stats.num_device_alloc;
  named["num_device_free"] = stats.num_device_free;
  return named;
}

void reset_peak_memory_stats(int device) { of(device).reset_peak_stats(); }
void reset_accumulated_memory_stats(int device) { of(device).reset_accumulated_stats(); }
void set_per_process_memory_fraction(double fraction, int device) { of(device).set_memory_fraction(fraction); }
double get_per_process_memory_fraction(int device) { return of(device).memory_fraction(); }

uint64_t make_pool_id() {
  static std::atomic<uint64_t> next{1};
  return next++;
}

MemPool::MemPool(int device) : device_(concrete_device(Device(kCUDA, device)).index), id_(make_pool_id()) {
  device_allocator(device_).make_group(id_);
}

MemPool::~MemPool() {
  try {
    device_allocator(device_).release_group(id_);
  } catch (const Error&) {
    // A kernel has failed for good, and the next call will say so.
  }
}

MemPoolContext::MemPoolContext(const MemPool& pool)
    : previous_device_(active_pool.device), previous_id_(active_pool.group) {
  active_pool = {pool.device_index(), pool.id()};
}

MemPoolContext::~MemPoolContext() { active_pool = {previous_device_, previous_id_}; }

void record_memory_history(const HistoryOptions& options) {
  for (int device = 0; device < device_count(); ++device) device_allocator(device).record_history(options);
}

std::vector<DeviceSnapshot> memory_snapshot() {
  std::vector<DeviceSnapshot> snapshots;
  for (int device = 0; device < device_count(); ++device) snapshots.push_back(device_allocator(device).snapshot());
  return snapshots;
}

}  // namespace rush::cuda
