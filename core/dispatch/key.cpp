#include "core/dispatch/key.h"

namespace rush {

const char* name(DispatchKey key) {
  static constexpr const char* names[kNumDispatchKeys] = {
      "Undefined",  "Meta",     "CPU",      "CUDA",   "QuantizedCPU", "QuantizedCUDA",  "SparseCPU",
      "SparseCUDA", "Autograd", "Autocast", "Tracer", "Profiler",     "UndefinedTensor"};
  return names[static_cast<int>(key)];
}

void append(std::string& out, KeySet keys) {
  out += '[';
  const char* separator = "";
  for (int i = kNumDispatchKeys - 1; i > 0; --i) {
    const auto key = static_cast<DispatchKey>(i);
    if (!keys.has(key)) continue;
    out += separator;
    out += name(key);
    separator = ", ";
  }
  out += ']';
}

}  // namespace rush
