#include "core/device/allocator.h"

#include <atomic>

#include "core/dispatch/registry.h"
#include "core/error/error.h"

namespace rush {

namespace {
std::atomic<Allocator*> installed[kNumDeviceTypes];
}

Allocator& allocator(DeviceType device) {
  const std::atomic<Allocator*>& slot = installed[static_cast<int>(device)];
  Allocator* current = slot.load(std::memory_order_acquire);
  if (RUSH_UNLIKELY(!current)) {
    // A tensor may be made before the first operator is called.
    registry();
    current = slot.load(std::memory_order_acquire);
  }
  RUSH_CHECK_NOT_IMPLEMENTED(current, "there is no allocator for device type ", device_type_name(device));
  return *current;
}

void set_allocator(DeviceType device, Allocator* replacement) {
  installed[static_cast<int>(device)].store(replacement, std::memory_order_release);
}

}  // namespace rush
