// The program of lab 9's training run: the demo, whose tensors on the CPU lie in blocks of the CUDA caching allocator.
#include <mutex>
#include <unordered_map>

#include "backends/cuda/memory/device_allocator.h"
#include "core/device/allocator.h"
#include "tests/labs/host_memory.h"

int train_digits(int argc, char** argv);  // main of examples/mnist/main.cpp

namespace {

using namespace rush;

class BlockAllocator final : public Allocator {
 public:
  Allocation allocate_on(Device /*device*/, size_t nbytes) override {
    if (nbytes == 0) return {};
    cuda::Block* block = blocks_.allocate(nbytes, /*stream=*/nullptr);
    return {block->data, block};
  }
  void deallocate(const Allocation& allocation, size_t /*nbytes*/) noexcept override {
    if (allocation.data) blocks_.deallocate(static_cast<cuda::Block*>(allocation.context));
  }

  // For callers that keep no context.
  void* allocate(size_t nbytes) override {
    const Allocation allocation = allocate_on(kCPU, nbytes);
    const std::lock_guard lock(mutex_);
    if (allocation.data) contexts_[allocation.data] = allocation.context;
    return allocation.data;
  }
  void deallocate(void* data, size_t nbytes) noexcept override {
    if (!data) return;
    std::unique_lock lock(mutex_);
    void* context = contexts_.extract(data).mapped();
    lock.unlock();
    deallocate(Allocation{data, context}, nbytes);
  }

  AllocatorStats stats() const override {
    const cuda::MemoryStats all = blocks_.stats();
    AllocatorStats stats;
    stats.allocated = all.allocated_bytes.all.current;
    stats.max_allocated = all.allocated_bytes.all.peak;
    stats.reserved = all.reserved_bytes.all.current;
    stats.max_reserved = all.reserved_bytes.all.peak;
    return stats;
  }
  void empty_cache() override { blocks_.empty_cache(); }

 private:
  labs::HostMemory memory_{size_t{16} << 30};
  cuda::DeviceAllocator blocks_{0, memory_, {}};
  std::mutex mutex_;
  std::unordered_map<void*, void*> contexts_;
};

}  // namespace

int main(int argc, char** argv) {
  allocator(kCPU);                          // the backend installs its own first
  set_allocator(kCPU, new BlockAllocator);  // never destroyed: tensors in static variables are freed after main
  return train_digits(argc, argv);
}
