#include "core/device/device.h"

#include <charconv>

#include "core/device/device_runtime.h"
#include "core/dispatch/key.h"

namespace rush {

const char* device_type_name(DeviceType type) {
  switch (type) {
    case DeviceType::CPU: return "cpu";
    case DeviceType::CUDA: return "cuda";
    case DeviceType::Meta: return "meta";
  }
  return "unknown";
}

Device::Device(std::string_view text) {
  const size_t colon = text.find(':');
  const std::string_view name = text.substr(0, colon);
  bool known = false;
  for (DeviceType candidate : {DeviceType::CPU, DeviceType::CUDA, DeviceType::Meta}) {
    if (name == device_type_name(candidate)) {
      type = candidate;
      known = true;
    }
  }
  RUSH_CHECK_VALUE(known, "Device: expected cpu, cuda, cuda:N or meta, got '", text, "'");
  if (colon == std::string_view::npos) return;
  const std::string_view digits = text.substr(colon + 1);
  int parsed = -1;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), parsed);
  RUSH_CHECK_VALUE(error == std::errc() && end == digits.data() + digits.size() && parsed >= 0 && parsed < 128,
                   "Device: bad device index in '", text, "'");
  index = static_cast<int8_t>(parsed);
}

std::string Device::str() const { return rush::str(*this); }

void append(std::string& out, Device device) {
  out += device_type_name(device.type);
  if (device.index >= 0) out += ":" + std::to_string(device.index);
}

Device get_default_device() { return dispatch_state.default_device; }

void set_default_device(Device device) {
  concrete_device(device);  // throws when there is no such device
  dispatch_state.default_device = device;
}

}  // namespace rush
