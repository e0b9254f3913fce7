#include "core/device/backend.h"

#include "core/compile/element_wise_loop.h"

#include <atomic>

#include "core/device/guard.h"
#include "core/dispatch/registry.h"
#include "core/graphs/graph.h"

namespace rush {

namespace {
std::atomic<Backend*> backends[kNumDeviceTypes];

[[noreturn]] void throw_lacks(const char* what) {
  RUSH_THROW(NotImplementedError, "this type of device has no ", what, ": its Backend does not override it");
}
}  // namespace

DeviceProperties Backend::properties(int /*device*/) { throw_lacks("properties"); }
MemoryInfo Backend::memory_info(int /*device*/) { throw_lacks("memory_info"); }
void Backend::copy_bytes(void*, Device, const void*, Device, size_t) { throw_lacks("copy_bytes"); }
void* Backend::create_event(int /*device*/, bool /*timing*/) { throw_lacks("events"); }
double Backend::elapsed_milliseconds(void*, void*) { throw_lacks("events"); }
Generator Backend::make_generator(Device device, uint64_t seed) {
  return rush::make_generator<GeneratorImpl>(device, seed);
}

std::unique_ptr<ElementWiseLoop> Backend::fuse(LoopDescription /*description*/) {
  RUSH_THROW(NotImplementedError, "this backend does not fuse loops");
}

Backend* backend_or_null(DeviceType type) {
  const std::atomic<Backend*>& slot = backends[static_cast<int>(type)];
  if (Backend* backend = slot.load(std::memory_order_acquire)) return backend;
  registry();  // where the library's own are registered
  return slot.load(std::memory_order_acquire);
}

Backend& backend_of(DeviceType type) {
  Backend* backend = backend_or_null(type);
  RUSH_CHECK_NOT_IMPLEMENTED(type != kMeta, "meta: tensors of this device have no data, and nothing runs on it");
  RUSH_CHECK_NOT_IMPLEMENTED(backend, device_type_name(type),
                             ": this program was built without the backend for such devices (CMake's RUSH_",
                             upper_case(device_type_name(type)), ")");
  backend->require_device();
  return *backend;
}

bool is_available(DeviceType type) noexcept {
  Backend* backend = backend_or_null(type);
  return backend && backend->device_count() > 0;
}

Backend* pinning_backend() noexcept {
  for (int i = kNumDeviceTypes - 1; i >= 0; --i) {  // those that a program added have the higher numbers
    Backend* backend = backend_or_null(static_cast<DeviceType>(i));
    if (backend && backend->pinned_allocator() && backend->device_count() > 0) return backend;
  }
  return nullptr;
}

DeviceType register_backend(std::string_view name, Backend& backend) {
  const DeviceType type = detail::add_device_type(name);
  register_backend(type, backend);
  if (backend.device_count() > 1) devices_to_check |= type;  // Note [The device of a call]
  return type;
}

void register_backend(DeviceType type, Backend& backend) {
  set_allocator(type, &backend.allocator());
  backends[static_cast<int>(type)].store(&backend, std::memory_order_release);
  if (backend.graph_runtime()) graphs::set_accelerator(type);
}

Device concrete_device(Device device) {
  if (!device.is_accelerator()) return device;
  Backend& backend = backend_of(device.type);
  if (device.index < 0) return Device(device.type, backend.current_device());
  RUSH_CHECK_VALUE(device.index < backend.device_count(), "there is no device ", device, ", there are ",
                   backend.device_count());
  return device;
}

void DeviceGuard::enter(Device device) {
  backend_ = &backend_of(device.type);
  original_ = backend_->current_device();
  if (original_ != device.index) {
    backend_->set_device(concrete_device(device).index);
  } else {
    backend_ = nullptr;
  }
}

void DeviceGuard::leave() noexcept {
  try {
    backend_->set_device(original_);
  } catch (const Error&) {
    // The device was current before; failing now means that the driver is shutting down.
  }
}

}  // namespace rush
