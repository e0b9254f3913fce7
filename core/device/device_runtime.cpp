#include "core/device/device_runtime.h"

#include <atomic>

#include "core/device/event.h"
#include "core/device/guard.h"
#include "core/dispatch/registry.h"

namespace rush {

namespace {
std::atomic<DeviceRuntime*> runtimes[kNumDeviceTypes];
}

DeviceRuntime* device_runtime_or_null(DeviceType type) {
  const std::atomic<DeviceRuntime*>& slot = runtimes[static_cast<int>(type)];
  if (DeviceRuntime* runtime = slot.load(std::memory_order_acquire)) return runtime;
  registry();  // where backends are registered
  return slot.load(std::memory_order_acquire);
}

DeviceRuntime& device_runtime(DeviceType type) {
  DeviceRuntime* runtime = device_runtime_or_null(type);
  RUSH_CHECK_NOT_IMPLEMENTED(runtime, device_type_name(type), ": this program was built without the ",
                             type == kCUDA ? "CUDA backend (CMake's RUSH_CUDA)" : "backend for such devices");
  runtime->require_device();
  return *runtime;
}

void set_device_runtime(DeviceType type, DeviceRuntime* runtime) {
  runtimes[static_cast<int>(type)].store(runtime, std::memory_order_release);
}

Device concrete_device(Device device) {
  if (!device.is_cuda()) return device;
  DeviceRuntime& runtime = device_runtime(device.type);
  if (device.index < 0) return Device(device.type, runtime.current_device());
  RUSH_CHECK_VALUE(device.index < runtime.device_count(), "there is no device ", device, ", there are ",
                   runtime.device_count());
  return device;
}

Stream current_stream(Device device) {
  if (!device.is_cuda()) return {};
  DeviceRuntime& runtime = device_runtime(device.type);
  return runtime.current_stream(device.index < 0 ? runtime.current_device() : device.index);
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
  if (handle_) device_runtime_or_null(type_)->destroy_event(handle_, device_);
}

void Event::record(const Stream& stream) {
  if (!stream.is_queue()) return;
  DeviceRuntime& runtime = device_runtime(type_);
  if (!handle_) {
    device_ = stream.device.index;
    handle_ = runtime.create_event(device_, timing_);
  }
  RUSH_CHECK_VALUE(device_ == stream.device.index, "Event: made on device ", device_, ", recorded on a stream of ",
                   stream.device);
  runtime.record(handle_, stream);
}

void Event::block(const Stream& stream) const {
  if (handle_ && stream.is_queue()) device_runtime(type_).wait(stream, handle_);
}

bool Event::query() const { return !handle_ || device_runtime(type_).query_event(handle_); }

void Event::synchronize() const {
  if (handle_) device_runtime(type_).synchronize_event(handle_);
}

double Event::elapsed_time(const Event& end) const {
  RUSH_CHECK_VALUE(timing_ && end.timing_, "Event: elapsed_time needs events made with enable_timing");
  RUSH_CHECK_VALUE(handle_ && end.handle_, "Event: elapsed_time needs events that were recorded");
  return device_runtime(type_).elapsed_milliseconds(handle_, end.handle_);
}

// ---- guards ----

void DeviceGuard::enter(Device device) {
  runtime_ = &device_runtime(device.type);
  original_ = runtime_->current_device();
  if (original_ != device.index) {
    runtime_->set_device(concrete_device(device).index);
  } else {
    runtime_ = nullptr;
  }
}

void DeviceGuard::leave() noexcept {
  try {
    runtime_->set_device(original_);
  } catch (const Error&) {
    // The device was current before; failing now means that the driver is shutting down.
  }
}

void StreamGuard::enter(const Stream& stream) {
  DeviceRuntime& runtime = device_runtime(stream.device.type);
  original_ = runtime.current_stream(stream.device.index);
  if (original_ == stream) {
    original_ = {};
  } else {
    runtime.set_current_stream(stream);
  }
}

void StreamGuard::leave() noexcept {
  // Choosing among streams asks nothing of the driver.
  device_runtime_or_null(original_.device.type)->set_current_stream(original_);
}

}  // namespace rush
