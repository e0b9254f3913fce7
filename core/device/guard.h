// Guards: another current device or stream until the end of a scope.
#pragma once
#include <optional>

#include "core/device/device.h"
#include "core/device/stream.h"

namespace rush {

class Backend;

/// Makes `device` the current one; nothing for the CPU and for a device without an index. Mirrors c10::DeviceGuard.
class DeviceGuard {
 public:
  explicit DeviceGuard(Device device) {
    if (device.is_accelerator() && device.index >= 0) enter(device);
  }
  explicit DeviceGuard(std::optional<Device> device) : DeviceGuard(device.value_or(get_default_device())) {}
  ~DeviceGuard() {
    if (backend_) leave();
  }
  DeviceGuard(const DeviceGuard&) = delete;
  DeviceGuard& operator=(const DeviceGuard&) = delete;

 private:
  void enter(Device device);
  void leave() noexcept;
  Backend* backend_ = nullptr;  // null when there is nothing to restore
  int original_ = -1;
};
using OptionalDeviceGuard = DeviceGuard;

/// Makes the stream's device and the stream current. Mirrors c10::StreamGuard.
class StreamGuard {
 public:
  explicit StreamGuard(const Stream& stream) : device_(stream.device) {
    if (stream.is_queue()) enter(stream);
  }
  ~StreamGuard() {
    if (original_.is_queue()) leave();
  }
  StreamGuard(const StreamGuard&) = delete;
  StreamGuard& operator=(const StreamGuard&) = delete;

 private:
  void enter(const Stream& stream);
  void leave() noexcept;
  DeviceGuard device_;
  Stream original_;  // of the same device; no queue when there is nothing to restore
};

}  // namespace rush
