// Device memory: torch.cuda's functions about it, private pools, and allocators of one's own. `device` -1 means the
// current one everywhere. This header needs none of CUDA's.
#pragma once
#include <cstdint>
#include <map>
#include <string>

#include "backends/cuda/memory/history.h"
#include "backends/cuda/memory/memory_stats.h"
#include "backends/cuda/stream/stream.h"
#include "core/device/allocator.h"

namespace rush::cuda {

// Returns to the driver what is reserved and not in use.
void empty_cache();

// Bytes. "Allocated" is what tensors hold, "reserved" what was taken from the driver; see MemoryStats.
int64_t memory_allocated(int device = -1);
int64_t max_memory_allocated(int device = -1);
int64_t memory_reserved(int device = -1);
int64_t max_memory_reserved(int device = -1);
MemoryStats memory_stats(int device = -1);
// The same by Python's names: "allocated_bytes.all.current".
std::map<std::string, int64_t> memory_stats_by_name(int device = -1);
// The maxima count again from what is in use now.
void reset_peak_memory_stats(int device = -1);
void reset_accumulated_memory_stats(int device = -1);

// The part of a device's memory, in (0, 1], that this process may reserve. Throws ValueError.
void set_per_process_memory_fraction(double fraction, int device = -1);
double get_per_process_memory_fraction(int device = -1);

// A number that no private pool has had, see MemPool and graph_pool_handle.
uint64_t make_pool_id();

// Memory that is kept apart: what is allocated from a pool is used again by the same pool only. It goes back to the
// driver when the pool is gone and its blocks are free. torch.cuda.MemPool.
class MemPool {
 public:
  explicit MemPool(int device = -1);
  ~MemPool();
  MemPool(const MemPool&) = delete;
  MemPool& operator=(const MemPool&) = delete;

  uint64_t id() const { return id_; }
  int device_index() const { return device_; }

 private:
  int device_;
  uint64_t id_;
};

// Until the end of the scope this thread's allocations on the pool's device come from the pool.
// torch.cuda.use_mem_pool.
class MemPoolContext {
 public:
  explicit MemPoolContext(const MemPool& pool);
  ~MemPoolContext();
  MemPoolContext(const MemPoolContext&) = delete;
  MemPoolContext& operator=(const MemPoolContext&) = delete;

 private:
  int previous_device_;
  uint64_t previous_id_;
};

// An allocator of one's own. torch.cuda.memory.CUDAPluggableAllocator.
class CUDAAllocator : public Allocator {
 public:
  // Memory of at least `nbytes` > 0 on `device`, for work on `stream`. Throws OutOfMemoryError.
  virtual void* malloc(size_t nbytes, int device, cudaStream_t stream) = 0;
  // Work on `stream` may still be using it.
  virtual void free(void* data, size_t nbytes, int device, cudaStream_t stream) noexcept = 0;
  // Another stream uses the memory, see Tensor::record_stream.
  virtual void record_stream(void* /*data*/, cudaStream_t /*stream*/) {}
  AllocatorStats stats() const override { return {}; }
  void empty_cache() override {}

  // What the tensors call, made of the above.
  void* allocate(size_t nbytes) final;
  void deallocate(void* data, size_t nbytes) noexcept final;
  Allocation allocate_on(Device device, size_t nbytes) final;
  void deallocate(const Allocation& block, size_t nbytes) noexcept final;
};

// Tensors made from now on use `allocator`, which must outlive them; null: the caching allocator again.
void change_current_allocator(CUDAAllocator* allocator);

// Starts recording what the caching allocator of every device does, or ends it with enabled = false. It makes
// allocations slower. torch.cuda.memory._record_memory_history.
void record_memory_history(const HistoryOptions& options = {});
// What it holds now and what was recorded.
std::vector<DeviceSnapshot> memory_snapshot();
// Writes a snapshot as the pickle file that PyTorch's page pytorch.org/memory_viz opens. Throws IOError.
void dump_memory_snapshot(const std::string& path);
// Writes it as one page that any browser shows, with nothing to load. Throws IOError.
void dump_memory_html(const std::string& path);

}  // namespace rush::cuda
