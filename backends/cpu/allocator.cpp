#include <atomic>
#include <cstdlib>

#include "backends/cpu/register.h"
#include "core/allocator.h"
#include "core/error.h"

namespace rush::cpu {

namespace {

class AlignedAllocator final : public Allocator {
 public:
  void* allocate(size_t nbytes) override {
    if (nbytes == 0) return nullptr;
    void* data = std::aligned_alloc(64, (nbytes + 63) / 64 * 64);
    RUSH_CHECK_AS(OutOfMemoryError, data, "out of memory: could not allocate ", nbytes, " bytes on cpu");
    return data;
  }
  void deallocate(void* data, size_t) noexcept override { std::free(data); }
  AllocatorStats stats() const override { return {}; }
  void empty_cache() override {}
};

}  // namespace

void register_allocator() {
  static AlignedAllocator instance;
  set_allocator(kCPU, &instance);
}

}  // namespace rush::cpu
