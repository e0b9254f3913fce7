// DeviceStart: has a device made ready while the program does something else.
#pragma once
#include "core/device/device.h"
#include "core/threads/thread.h"

namespace rush {

/// Does in a thread what the device's first work would wait for (a GPU's context, the handles and kernels of
/// libraries), beside what the caller does meanwhile; the destructor waits for it. Throws as concrete_device does. What
/// fails in the thread fails again, and is reported, where the device is used.
///
///   const rush::DeviceStart start(device);
///   const Text data = read_text(path);
class DeviceStart {
 public:
  explicit DeviceStart(Device device);

 private:
  detail::Thread thread_;
};

}  // namespace rush
