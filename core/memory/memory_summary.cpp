#include "core/memory/memory_summary.h"

#include "core/device/allocator.h"
#include "core/device/backend.h"
#include "core/device/guard.h"
#include "core/memory/byte_text.h"
#include "core/str.h"

namespace rush {

std::string memory_summary(Device device) {
  if (device.is_accelerator()) device = concrete_device(device);
  const DeviceGuard guard(device);  // whose allocator tells of the current one
  const AllocatorStats stats = allocator(device.type).stats();
  std::string text = str("memory of ", device, "\n");
  const auto line = [&](std::string_view name, const std::string& value) {
    text += str("  ", name, std::string(36 - std::min<size_t>(name.size() + value.size(), 35), ' '), value, "\n");
  };
  const MemoryUses uses = detail::uses_of(device, stats.allocated);
  for (size_t i = kNumMemoryUses; i-- > 0;) {
    const auto use = static_cast<MemoryUse>(i);
    line(memory_use_name(use), byte_text(uses[use]));
  }
  line("in use", byte_text(stats.allocated));
  line("in use at most", byte_text(stats.max_allocated));
  line("kept for reuse", byte_text(stats.reserved - stats.allocated));
  line("reserved at most", byte_text(stats.max_reserved));
  line("requests", str(stats.allocations));
  line("of them served by a kept block", str(stats.cache_hits));
  return text;
}

}  // namespace rush
