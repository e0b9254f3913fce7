// What a backend with devices of its own tells the rest about them. The CPU has none: its work is done when it returns.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>

#include "core/device/allocator.h"
#include "core/device/stream.h"
#include "core/storage.h"

namespace rush {

// The parts of cudaDeviceProp that programs ask for, by its names.
struct DeviceProperties {
  std::string name;
  int major = 0, minor = 0;  // the compute capability
  size_t total_memory = 0;
  int multi_processor_count = 0;
  int max_threads_per_multi_processor = 0;
  int warp_size = 0;
  size_t shared_memory_per_block = 0;  // what a kernel can opt in to
  size_t l2_cache_size = 0;
};

struct MemoryInfo {
  size_t free = 0, total = 0;  // bytes, as the driver counts them
};

// Every function may throw CudaError.
class DeviceRuntime {
 public:
  virtual ~DeviceRuntime() = default;

  // 0 where there is no driver or no device; never throws.
  virtual int device_count() noexcept = 0;
  // Throws one line saying what is missing unless there is a device.
  virtual void require_device() = 0;
  // This thread's.
  virtual int current_device() = 0;
  virtual void set_device(int device) = 0;
  // Waits for all work of the device.
  virtual void synchronize(int device) = 0;
  virtual DeviceProperties properties(int device) = 0;
  virtual MemoryInfo memory_info(int device) = 0;

  virtual Stream current_stream(int device) = 0;
  virtual void set_current_stream(const Stream& stream) = 0;
  // One of a few streams beside the default one, which are handed out in turn.
  virtual Stream stream_from_pool(int device) = 0;
  virtual void synchronize(const Stream& stream) = 0;
  // Whether all its work is done.
  virtual bool query(const Stream& stream) = 0;

  // Events, by handles. One that is waited for before it was recorded does not delay anybody.
  virtual void* create_event(int device, bool timing) = 0;
  virtual void destroy_event(void* event, int device) noexcept = 0;
  virtual void record(void* event, const Stream& stream) = 0;
  virtual void wait(const Stream& stream, void* event) = 0;
  virtual bool query_event(void* event) = 0;
  virtual void synchronize_event(void* event) = 0;
  virtual double elapsed_milliseconds(void* start, void* end) = 0;

  // The memory must not be handed out again before the work that `stream` has by the time it is freed is done.
  virtual void record_stream(const StorageImpl& storage, const Stream& stream) = 0;
  // Memory of the host that the device reads by itself.
  virtual Allocator& pinned_allocator() = 0;
  virtual bool is_pinned(const void* data) = 0;
};

// The backend's; null where it is not built in.
DeviceRuntime* device_runtime_or_null(DeviceType type);
// Throws NotImplementedError where it is not built in, and CudaError where it is and there is no driver or device.
DeviceRuntime& device_runtime(DeviceType type);
void set_device_runtime(DeviceType type, DeviceRuntime* runtime);

// `device` with its index: that of the current one where it has none. Throws as device_runtime does, and ValueError
// when there is no such device.
Device concrete_device(Device device);

}  // namespace rush
