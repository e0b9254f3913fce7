#include "core/dispatch/key.h"

namespace rush {

constinit std::atomic<const char*> detail::key_names[kNumDispatchKeys] = {
    "Undefined", "Dense", "Sparse", "Tracer",          "Autograd", "Autocast", "Free1",
    "Free2",     "Free3", "Free4",  "UndefinedTensor", "Profiler", "Trace"};

const char* name(DispatchKey key) { return detail::key_names[static_cast<int>(key)]; }

void append(std::string& out, KeySet keys) {
  out += '[';
  const char* separator = "";
  const auto append_one = [&](const char* name) {
    out += separator;
    out += name;
    separator = ", ";
  };
  for (int i = kNumDispatchKeys - 1; i > 0; --i) {
    const auto key = static_cast<DispatchKey>(i);
    if (keys.has(key)) append_one(name(key));
  }
  for (int i = kNumDeviceTypes - 1; i >= 0; --i) {
    const auto device = static_cast<DeviceType>(i);
    if (keys.has(device)) append_one(device_type_name(device));
  }
  out += ']';
}

}  // namespace rush
