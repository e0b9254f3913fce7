// A queue of work on a device, as code that knows no backend sees it.
#pragma once
#include <cstdint>

#include "core/device/device.h"

namespace rush {

/// The handle is the backend's: a cudaStream_t, null for a device's default stream. A default-constructed Stream stands
/// for the CPU, where work is done when the call returns. Mirrors c10::Stream.
struct Stream {
  Device device;
  void* handle = nullptr;

  /// Whether there is a queue at all.
  bool is_queue() const { return device.is_accelerator(); }
  DeviceType device_type() const { return device.type; }
  int device_index() const { return device.index; }
  int64_t id() const { return reinterpret_cast<int64_t>(handle); }

  friend bool operator==(const Stream& a, const Stream& b) { return a.device == b.device && a.handle == b.handle; }
};

/// The stream that this thread's work on `device` goes to; index -1 means the current device.
Stream current_stream(Device device);
/// Makes all work that `waiting` is given from now on wait for what `first` has been given until now. Costs nothing
/// when both are the same.
void wait_stream(const Stream& waiting, const Stream& first);

}  // namespace rush
