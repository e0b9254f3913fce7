// Backend: what the library knows about a type of device. One joins from outside as CPU and CUDA do.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "core/array_ref.h"
#include "core/device/allocator.h"
#include "core/device/generator.h"
#include "core/device/stream.h"
#include "core/scalar_type.h"
#include "core/storage.h"

namespace rush {

class ElementWiseLoop;
class IteratorCall;
struct LoopDescription;

// Note [Backends]
// A backend is an object of a class that derives from Backend, and kernels. The object is given to register_backend;
// the kernels are set one by one, `kernels::add.set(type, fn)`, see Note [Fronts and kernels]. Everything else asks
// the object: factories for memory, the engine for streams, operators for generators. Only the allocator and
// `copy_bytes` must be there. A device without streams does its work before a call returns, as the CPU does; the
// kernels that it lacks may run on the CPU, Note [Falling back to the CPU].
//
//   struct Sim final : rush::Backend {
//     rush::Allocator& allocator() override { return memory; }
//     void copy_bytes(void* to, rush::Device, const void* from, rush::Device, size_t n) override { ... }
//     bool falls_back_to_cpu() const override { return true; }
//     SimMemory memory;
//   };
//   static Sim sim;
//   const rush::DeviceType kSim = rush::register_backend("sim", sim);
//   rush::Tensor x = rush::ones({2, 3}, rush::Device("sim:0"));

namespace graphs {
class GraphRuntime;
}
namespace profiler {
class ActivitySource;
}

/// The parts of cudaDeviceProp that programs ask for, by its names.
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

/// Of one device.
struct MemoryInfo {
  size_t free = 0, total = 0;  // bytes, as the driver counts them
};

/// Functions that are not overridden describe one device that is always there and has no streams; those that such a
/// device cannot serve throw NotImplementedError. All but the noexcept ones may throw what the device reports.
class Backend {
 public:
  virtual ~Backend() = default;

  // ---- devices

  /// 0 where there is no driver or no device.
  virtual int device_count() noexcept { return 1; }
  /// Throws one line saying what is missing unless there is a device.
  virtual void require_device() {}
  /// This thread's.
  virtual int current_device() { return 0; }
  virtual void set_device(int /*device*/) {}
  /// Waits for all work of the device; of the current one where it is negative.
  virtual void synchronize(int /*device*/) {}
  /// Does now what the device's first work would wait for: see DeviceStart.
  virtual void start(int /*device*/) {}
  virtual DeviceProperties properties(int device);  // its name, sizes and limits
  virtual MemoryInfo memory_info(int device);       // free and total bytes

  // ---- memory

  virtual Allocator& allocator() = 0;  // one for all devices of the type
  /// Copies between memory of this type of device and of the CPU, or of another of its devices; when it returns, both
  /// may be used. Called by copies for which the backend sets no kernels::copy_between, and for the CPU's kernels.
  virtual void copy_bytes(void* to, Device to_device, const void* from, Device from_device, size_t nbytes);
  /// Memory of the host that the device reads by itself; null where there is none.
  virtual Allocator* pinned_allocator() { return nullptr; }
  virtual bool is_pinned(const void* /*data*/) { return false; }  // such memory holds the address

  // ---- streams

  /// One that is no queue where the device has no streams; nothing below is called then.
  virtual Stream current_stream(int /*device*/) { return {}; }
  virtual void set_current_stream(const Stream& /*stream*/) {}
  /// One of a few streams beside the default one, which are handed out in turn.
  virtual Stream stream_from_pool(int /*device*/) { return {}; }
  virtual void synchronize(const Stream& /*stream*/) {}  // waits for all of its work
  /// Whether all its work is done.
  virtual bool query(const Stream& /*stream*/) { return true; }
  /// The memory must not be handed out again before the work that `stream` has by the time it is freed is done.
  virtual void record_stream(const StorageImpl& /*storage*/, const Stream& /*stream*/) {}

  /// Events, by handles. Waiting for an event that was not recorded returns at once.
  virtual void* create_event(int device, bool timing);
  virtual void destroy_event(void* /*event*/, int /*device*/) noexcept {}
  virtual void record(void* /*event*/, const Stream& /*stream*/) {}
  virtual void wait(const Stream& /*stream*/, void* /*event*/) {}
  virtual bool query_event(void* /*event*/) { return true; }
  virtual void synchronize_event(void* /*event*/) {}
  virtual double elapsed_milliseconds(void* start, void* end);

  // ---- operators

  /// A default generator of one of its devices.
  virtual Generator make_generator(Device device, uint64_t seed);
  /// Null where work cannot be recorded and replayed. What rush::compile records depends on properties(), too.
  virtual graphs::GraphRuntime* graph_runtime() { return nullptr; }
  /// What profiles learn of its devices' work from; null where they see the calls alone.
  virtual profiler::ActivitySource* activity_source() { return nullptr; }
  /// Whether `fuse` knows the kernel, for operands of these dtypes, the output's first.
  virtual bool can_fuse(const IteratorCall& /*call*/, ArrayRef<ScalarType> /*dtypes*/) { return false; }
  /// A loop of several kernels, of which it knows each.
  virtual std::unique_ptr<ElementWiseLoop> fuse(LoopDescription description);
  /// Whether the CPU's kernels stand in for those that it lacks.
  virtual bool falls_back_to_cpu() const { return false; }
};

/// The backend of a type; null where it is not built in, as always for meta.
Backend* backend_or_null(DeviceType type);
/// Throws NotImplementedError where it is not built in, and what require_device throws.
Backend& backend_of(DeviceType type);
/// Whether there is a device of the type. Never throws.
bool is_available(DeviceType type) noexcept;
/// That of a type that has a device and memory of the host that the device reads by itself: the last one that a program
/// added, before the built-in ones. Null without any.
Backend* pinning_backend() noexcept;

/// Both must outlive every tensor. The first adds a device type under `name`, which then parses, prints, is saved and
/// loaded: it must be a lower-case word that no type has. ValueError otherwise, or when there are kNumDeviceTypes.
DeviceType register_backend(std::string_view name, Backend& backend);
void register_backend(DeviceType type, Backend& backend);

/// `device` with its index: that of the current one where it has none. Throws as backend_of does, and ValueError when
/// there is no such device.
Device concrete_device(Device device);

}  // namespace rush
