#include "core/device/device.h"

#include <algorithm>
#include <atomic>
#include <charconv>
#include <mutex>
#include <optional>

#include "core/device/backend.h"
#include "core/dispatch/key.h"

namespace rush {

namespace detail {
// Null from the first type on that nobody has added. tools/gdb reads it.
std::atomic<const char*> device_type_names[kNumDeviceTypes] = {kBuiltInDeviceNames[0], kBuiltInDeviceNames[1],
                                                               kBuiltInDeviceNames[2]};
}  // namespace detail

namespace {

using detail::device_type_names;

std::optional<DeviceType> find_device_type(std::string_view name) {
  for (int i = 0; i < kNumDeviceTypes; ++i) {
    const char* known = device_type_names[i].load(std::memory_order_acquire);
    if (known && name == known) return static_cast<DeviceType>(i);
  }
  return std::nullopt;
}

std::string all_names() {
  std::string all;
  for (const std::atomic<const char*>& name : device_type_names) {
    if (name) all += str(all.empty() ? "" : ", ", name.load());
  }
  return all;
}
}  // namespace

const char* device_type_name(DeviceType type) {
  const char* name = device_type_names[static_cast<int>(type)].load(std::memory_order_acquire);
  return name ? name : "unknown";
}

DeviceType detail::add_device_type(std::string_view name, int type) {
  const bool is_word = std::all_of(name.begin(), name.end(), [](char c) { return (c >= 'a' && c <= 'z') || c == '_'; });
  RUSH_CHECK_VALUE(is_word && !name.empty(), "register_backend: expected a name of lower-case letters, got '", name,
                   "'");
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  RUSH_CHECK_VALUE(!find_device_type(name), "register_backend: there is a device type '", name, "' already");
  while (type < kNumDeviceTypes && device_type_names[type]) ++type;
  RUSH_CHECK_VALUE(type < kNumDeviceTypes, "register_backend: there is no room for '", name, "' beside ", all_names());
  const std::string& kept = *new std::string(name);  // for ever
  device_type_names[type].store(kept.c_str(), std::memory_order_release);
  return static_cast<DeviceType>(type);
}

Device::Device(std::string_view text) {
  const size_t colon = text.find(':');
  const std::optional<DeviceType> known = find_device_type(text.substr(0, colon));
  RUSH_CHECK_VALUE(known, "Device: Expected one of ", all_names(), " device type at start of device string: ", text,
                   "; an index may follow it, as in ", detail::kBuiltInDeviceNames[1], ":0");
  type = *known;
  if (colon == std::string_view::npos) return;
  const std::string_view digits = text.substr(colon + 1);
  int parsed = -1;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), parsed);
  RUSH_CHECK_VALUE(error == std::errc() && end == digits.data() + digits.size() && parsed >= 0 && parsed < 128 &&
                       (digits.size() == 1 || digits[0] != '0'),
                   "Device: Invalid device string: '", text, "', its index is not a number below 128");
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
