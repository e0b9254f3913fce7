// Allocator: the interface of memory allocators; each backend installs its own.
#pragma once
#include <cstddef>
#include <cstdint>

#include "core/device/device.h"

namespace rush {

/// Counts since the process started, in bytes. "Allocated": what tensors hold; "reserved": also blocks kept for reuse.
struct AllocatorStats {
  int64_t allocated = 0;
  int64_t max_allocated = 0;
  int64_t reserved = 0;
  int64_t max_reserved = 0;
  int64_t allocations = 0;  // calls
  int64_t cache_hits = 0;   // calls that a kept block served
};

/// A block as its storage keeps it. The context is the allocator's own: it finds its record of the block by it.
struct Allocation {
  void* data = nullptr;
  void* context = nullptr;
};

class Allocator {
 public:
  virtual ~Allocator() = default;
  /// At least `nbytes` of memory, aligned to 64 bytes; null for zero bytes. Throws OutOfMemoryError.
  virtual void* allocate(size_t nbytes) = 0;
  /// `nbytes` is what `allocate` was asked for.
  virtual void deallocate(void* data, size_t nbytes) noexcept = 0;
  /// What storages call: memory of this device rather than of the current one, and a context.
  virtual Allocation allocate_on(Device /*device*/, size_t nbytes) { return {allocate(nbytes), nullptr}; }
  virtual void deallocate(const Allocation& block, size_t nbytes) noexcept { deallocate(block.data, nbytes); }
  virtual AllocatorStats stats() const = 0;  // of the current device
  /// Gives the blocks kept for reuse back to the system.
  virtual void empty_cache() = 0;
};

/// The allocator in use on a device. Throws NotImplementedError where the device's backend is not built in.
Allocator& allocator(DeviceType device);
/// Tensors made from now on use `replacement`, which must outlive them.
void set_allocator(DeviceType device, Allocator* replacement);

}  // namespace rush
