#include "core/dispatch/key.h"

namespace rush {

constinit std::atomic<const char*> detail::key_names[kNumDispatchKeys] = {
    "Undefined", "Meta",  "CPU",   "CUDA",  "SparseCPU", "SparseCUDA",     "Autograd",
    "Autocast",  "Free1", "Free2", "Free3", "Free4",     "UndefinedTensor"};

const char* name(DispatchKey key) { return detail::key_names[static_cast<int>(key)]; }

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
