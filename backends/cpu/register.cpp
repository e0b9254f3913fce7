#include "backends/cpu/register.h"

#include <algorithm>

#include "backends/cpu/fused_loop.h"
#include "backends/cpu/memory/caching_allocator.h"
#include "backends/cpu/memory/memory.h"
#include "core/device/backend.h"

namespace rush {

namespace {
class CpuBackend final : public Backend {
 public:
  MemoryInfo memory_info(int /*device*/) override {
    const auto limit = static_cast<size_t>(cpu::memory_limit());
    const auto reserved = static_cast<size_t>(cpu::memory_reserved());
    return {limit - std::min(limit, reserved), limit};
  }
  Allocator& allocator() override { return cpu::CachingAllocator::instance(); }
  Generator make_generator(Device /*device*/, uint64_t seed) override {
    return rush::make_generator<CPUGeneratorImpl>(seed);
  }
  bool can_fuse(const IteratorCall& /*call*/, ArrayRef<ScalarType> /*dtypes*/) override { return true; }
  std::unique_ptr<ElementWiseLoop> fuse(LoopDescription description) override {
    return cpu::fuse(std::move(description));
  }
};
}  // namespace

void register_cpu(Registry&) {
  // Never destroyed: tensors in static variables are freed after everything else.
  static auto& backend = *new CpuBackend;
  register_backend(kCPU, backend);
#define RUSH_CALL(function) cpu::function();
  RUSH_FORALL_CPU_FAMILIES(RUSH_CALL)
#undef RUSH_CALL
}

}  // namespace rush
