#include "backends/cpu/register.h"

#include "backends/cpu/memory/caching_allocator.h"
#include "core/device/backend.h"

namespace rush {

namespace {
class CpuBackend final : public Backend {
 public:
  Allocator& allocator() override { return cpu::CachingAllocator::instance(); }
  Generator make_generator(Device /*device*/, uint64_t seed) override {
    return rush::make_generator<CPUGeneratorImpl>(seed);
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
