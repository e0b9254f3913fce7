#include "core/memory/memory_use.h"

#include <algorithm>
#include <atomic>
#include <numeric>
#include <string>
#include <vector>

#include "core/device/allocator.h"
#include "core/device/backend.h"
#include "core/device/guard.h"
#include "core/memory/byte_text.h"
#include "core/memory/meta_ledger.h"
#include "core/storage.h"

namespace rush {

namespace {

constexpr MemoryUse kUses[] = {MemoryUse::Other,    MemoryUse::Activation,     MemoryUse::Buffer,
                               MemoryUse::Gradient, MemoryUse::OptimizerState, MemoryUse::Parameter};
static_assert(std::size(kUses) == kNumMemoryUses);

constexpr size_t kDevices = 16;  // of a type; those beyond share the last one's
constinit std::atomic<int64_t> counts[kNumDeviceTypes][kDevices][kNumMemoryUses];

auto& counts_of(Device device) {
  const auto index = static_cast<size_t>(std::max<int>(device.index, 0));
  return counts[static_cast<size_t>(static_cast<DeviceType>(device.type))][std::min(index, kDevices - 1)];
}

std::string_view advice_on(MemoryUse use) {
  switch (use) {
    case MemoryUse::Activation:
      return "a smaller batch, autograd::checkpoint, or 16 bits under autocast would need fewer activations";
    case MemoryUse::OptimizerState: return "Adafactor, or SGD without momentum, would need smaller states than Adam";
    case MemoryUse::Gradient: return "zero_grad() before the forward pass would leave the gradients' memory to it";
    case MemoryUse::Parameter: return "weights in 16 bits, or a smaller model, would need half or less";
    case MemoryUse::Buffer:
    case MemoryUse::Other: break;
  }
  return "a smaller batch would need smaller temporaries; tensors that are kept from step to step, as losses that "
         "are added up with their graphs, never come back";
}

}  // namespace

void StorageImpl::raise_use(MemoryUse use) {
  MemoryUse before = this->use();
  do {
    if (before >= use) return;
  } while (!use_.compare_exchange_weak(before, use));
  if (device_.is_meta()) return detail::meta_claimed(*this, before, use);
  if (before != MemoryUse::Other) detail::count_memory(*this, before, -1);
  detail::count_memory(*this, use, 1);
}

void StorageImpl::note_made() {
  if (device_.is_meta()) context_ = detail::meta_made(*this);
}

std::string_view memory_use_name(MemoryUse use) {
  static constexpr std::string_view names[] = {"temporaries", "activations",      "buffers",
                                               "gradients",   "optimizer states", "parameters"};
  static_assert(std::size(names) == kNumMemoryUses);
  return names[static_cast<size_t>(use)];
}

int64_t MemoryUses::sum() const { return std::accumulate(bytes_.begin(), bytes_.end(), int64_t{0}); }

std::string MemoryUses::text() const {
  std::vector<MemoryUse> order(std::begin(kUses), std::end(kUses));
  std::stable_sort(order.begin(), order.end(), [&](MemoryUse a, MemoryUse b) { return (*this)[a] > (*this)[b]; });
  std::string text;
  for (const MemoryUse use : order) {
    if ((*this)[use] > 0) text += str(text.empty() ? "" : ", ", memory_use_name(use), " ", byte_text((*this)[use]));
  }
  return text;
}

MemoryUses memory_uses(Device device) {
  if (device.is_accelerator()) device = concrete_device(device);
  const DeviceGuard guard(device);  // whose allocator tells of the current one
  return detail::uses_of(device, allocator(device.type).stats().allocated);
}

namespace detail {

void count_memory(const StorageImpl& storage, MemoryUse use, int sign) noexcept {
  const size_t nbytes = storage.nbytes();
  if (nbytes < kSmallestCounted) return;
  counts_of(storage.device())[static_cast<size_t>(use)].fetch_add(sign * static_cast<int64_t>(nbytes),
                                                                  std::memory_order_relaxed);
}

MemoryUses uses_of(Device device, int64_t allocated) noexcept {
  MemoryUses uses;
  for (const MemoryUse use : kUses) {
    uses[use] = std::max<int64_t>(counts_of(device)[static_cast<size_t>(use)].load(std::memory_order_relaxed), 0);
  }
  uses[MemoryUse::Other] = std::max<int64_t>(allocated - uses.sum(), 0);
  return uses;
}

std::string full_of(Device device, int64_t allocated) {
  const MemoryUses uses = uses_of(device, allocated);
  if (uses.sum() == 0) return {};
  const MemoryUse most = *std::max_element(std::begin(kUses), std::end(kUses),
                                           [&](MemoryUse a, MemoryUse b) { return uses[a] < uses[b]; });
  return str("; in use: ", uses.text(), "; ", advice_on(most), " (docs/out_of_memory.md)");
}

}  // namespace detail

}  // namespace rush
