#include "backends/cuda/nvtx.h"

#include <nvtx3/nvToolsExt.h>

#include <cstdlib>
#include <string>

#include "backends/cuda/register.h"
#include "core/dispatch/registry.h"

namespace rush::cuda {

// They return how deep the ranges nest, or a negative number where no tool listens.
CallRanges call_ranges = {[](std::string_view op) { static_cast<void>(nvtxRangePushA(std::string(op).c_str())); },
                          []() noexcept { static_cast<void>(nvtxRangePop()); }};

void mark_range(const OpBase& op, KeySet keys, Stack& stack) {
  const KeySet behind = stops_behind(keys) | DispatchKey::Profiler;
  const DispatchKey next = op.served_by(keys.without(KeySet(DispatchKey::Trace) | DispatchKey::Profiler));
  if (!keys.has(kCUDA) || !is_backend_key(next)) return op.call_boxed(stack, behind);
  struct Range {
    explicit Range(std::string_view op) { call_ranges.begin(op); }
    ~Range() { call_ranges.end(); }
  } range(op.name());
  op.call_boxed(stack, behind);
}

void register_nvtx(Registry& registry) {
  registry.fallback(DispatchKey::Profiler, mark_range);
  const char* wanted = std::getenv("RUSH_NVTX");
  if (wanted && std::string_view(wanted) == "1") watching |= DispatchKey::Profiler;
}

}  // namespace rush::cuda
