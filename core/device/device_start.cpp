#include "core/device/device_start.h"

#include <system_error>

#include "core/device/backend.h"

namespace rush {

DeviceStart::DeviceStart(Device device) {
  const Device concrete = concrete_device(device);
  if (!concrete.is_accelerator()) return;
  const auto start = [concrete, &backend = backend_of(concrete.type)] {
    try {
      backend.start(concrete.index);
    } catch (const std::exception&) {
      // As documented.
    }
  };
  try {
    thread_ = detail::Thread(start);
  } catch (const std::system_error&) {
    // The machine refuses a thread: the first work waits.
  }
}

}  // namespace rush
