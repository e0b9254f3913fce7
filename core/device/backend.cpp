#include "core/device/backend.h"

#include <atomic>
#include <cctype>

#include "core/device/event.h"
#include "core/device/guard.h"
#include "core/dispatch/registry.h"
#include "core/graphs/graph.h"

namespace rush {

namespace {
std::atomic<Backend*> backends[kNumDeviceTypes];

[[noreturn]] void throw_lacks(const char* what) {
  RUSH_THROW(NotImplementedError, "this type of device has no ", what, ": its Backend does not override it");
}
std::string upper_case(std::string text) {
  for (char& c : text) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return text;
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

Backend* backend_or_null(DeviceType type) {
  const std::atomic<Backend*>& slot = backends[static_cast<int>(type)];
  if (Backend* backend = slot.load(std::memory_order_acquire)) return backend;
  registry();  // where the library's own are registered
  return slot.load(std::memory_order_acquire);
}

Backend& backend_of(DeviceType type) {
  Backend* backend = backend_or_null(type);
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
  for (int i = 0; i < kNumDeviceTypes; ++i) {
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

Stream current_stream(Device device) {
  if (!device.is_accelerator()) return {};
  Backend& backend = backend_of(device.type);
  return backend.current_stream(device.index < 0 ? backend.current_device() : device.index);
}

void wait_stream(const Stream& waiting, const Stream& first) {
  if (waiting == first || !first.is_queue()) return;
  Event event(first.device.type);
  event.record(first);
  if (waiting.is_queue()) {
    event.block(waiting);
  } else {
    event.synchronize();
  }
}

// ---- events ----

Event::~Event() {
  if (handle_) backend_or_null(type_)->destroy_event(handle_, device_);
}

void Event::record(const Stream& stream) {
  if (!stream.is_queue()) return;
  if (!handle_) type_ = stream.device.type;
  Backend& backend = backend_of(type_);
  if (!handle_) {
    device_ = stream.device.index;
    handle_ = backend.create_event(device_, timing_);
  }
  RUSH_CHECK_VALUE(stream.device == Device(type_, device_), "Event: made on ", Device(type_, device_),
                   ", recorded on a stream of ", stream.device);
  backend.record(handle_, stream);
}

void Event::block(const Stream& stream) const {
  if (handle_ && stream.is_queue()) backend_of(type_).wait(stream, handle_);
}

bool Event::query() const { return !handle_ || backend_of(type_).query_event(handle_); }

void Event::synchronize() const {
  if (handle_) backend_of(type_).synchronize_event(handle_);
}

double Event::elapsed_time(const Event& end) const {
  RUSH_CHECK_VALUE(timing_ && end.timing_, "Event: elapsed_time needs events made with enable_timing");
  RUSH_CHECK_VALUE(handle_ && end.handle_, "Event: elapsed_time needs events that were recorded");
  return backend_of(type_).elapsed_milliseconds(handle_, end.handle_);
}

// ---- guards ----

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

void StreamGuard::enter(const Stream& stream) {
  Backend& backend = backend_of(stream.device.type);
  original_ = backend.current_stream(stream.device.index);
  if (original_ == stream) {
    original_ = {};
  } else {
    backend.set_current_stream(stream);
  }
}

void StreamGuard::leave() noexcept {
  // Choosing among streams asks nothing of the driver.
  backend_or_null(original_.device.type)->set_current_stream(original_);
}

}  // namespace rush
