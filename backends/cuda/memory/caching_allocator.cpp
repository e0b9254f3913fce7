#include "backends/cuda/memory/caching_allocator.h"

#include <array>
#include <atomic>
#include <mutex>
#include <utility>

#include "backends/cuda/graphs/capture.h"
#include "backends/cuda/memory/context_keeper.h"
#include "backends/cuda/memory/memory.h"
#include "backends/cuda/memory/scratch.h"
#include "backends/cuda/register.h"
#include "backends/cuda/thread_state.h"
#include "core/device/backend.h"
#include "core/dispatch/op.h"
#include "core/error/error.h"

namespace rush::cuda {

namespace {

int index_of(Device device) { return device.index >= 0 ? device.index : thread_state.device; }

// The caching allocators of all devices behind the one interface.
class CachingAllocator final : public ContextKeeper {
 public:
  Allocation allocate_on(Device device, size_t nbytes) override {
    if (nbytes == 0) return {};
    const int index = index_of(device);
    check_takes_part(index, thread_state.streams[index], "an allocation");
    const uint64_t group = active_pool.device == index ? active_pool.group : 0;
    Block* block = device_allocator(index).allocate(nbytes, thread_state.streams[index], group);
    return {block->data, block};
  }
  void deallocate(const Allocation& allocation, size_t /*nbytes*/) noexcept override {
    if (!allocation.data) return;
    auto* block = static_cast<Block*>(allocation.context);
    block->allocator->deallocate(block);
  }

  AllocatorStats stats() const override {
    const MemoryStats all = device_allocator(thread_state.device).stats();
    AllocatorStats stats;
    stats.allocated = all.allocated_bytes.all.current;
    stats.max_allocated = all.allocated_bytes.all.peak;
    stats.reserved = all.reserved_bytes.all.current;
    stats.max_reserved = all.reserved_bytes.all.peak;
    stats.allocations = all.allocation.all.allocated;
    stats.cache_hits = stats.allocations - all.num_device_alloc;
    return stats;
  }
  void empty_cache() override {
    check_not_capturing("empty_cache");
    for (int device = 0; device < backend_of(kCUDA).device_count(); ++device) device_allocator(device).empty_cache();
  }
};

// RUSH_CUDA_ALLOC_CONF=passthrough:True. The driver's free waits for the device, so streams need no care.
class PassthroughAllocator final : public Allocator {
 public:
  Allocation allocate_on(Device device, size_t nbytes) override {
    if (nbytes == 0) return {};
    const int index = index_of(device);
    void* data = memory_driver(index).allocate(nbytes);
    RUSH_CHECK_AS(OutOfMemoryError, data, "CUDA out of memory: tried to allocate ", nbytes, " bytes on cuda:", index,
                  "; ", memory_driver(index).info().free, " are free");
    return {data, &memory_driver(index)};
  }
  void deallocate(const Allocation& allocation, size_t /*nbytes*/) noexcept override {
    if (allocation.data) deallocate_on(*static_cast<MemoryDriver*>(allocation.context), allocation.data);
  }
  void* allocate(size_t nbytes) override { return allocate_on(Device(kCUDA), nbytes).data; }
  void deallocate(void* data, size_t /*nbytes*/) noexcept override {
    if (data) deallocate_on(memory_driver(thread_state.device), data);
  }
  AllocatorStats stats() const override { return {}; }
  void empty_cache() override {}

 private:
  static void deallocate_on(MemoryDriver& driver, void* data) noexcept {
    try {
      driver.free(data);
    } catch (const Error&) {
      // A kernel has failed for good, and the next call will say so.
    }
  }
};

}  // namespace

Allocator& caching_allocator() {
  // Never destroyed: tensors in static variables are freed after everything else.
  static Allocator& instance = *[]() -> Allocator* {
    if (AllocatorConfig::of_process().passthrough) return new PassthroughAllocator;
    return new CachingAllocator;
  }();
  return instance;
}

DeviceAllocator& device_allocator(int device) {
  static auto& slots = *new std::array<std::atomic<DeviceAllocator*>, kMaxDevices>{};
  static std::mutex& mutex = *new std::mutex;
  std::atomic<DeviceAllocator*>& slot = slots[static_cast<size_t>(device)];
  if (DeviceAllocator* made = slot.load(std::memory_order_acquire)) return *made;
  const std::lock_guard lock(mutex);
  if (!slot.load()) {
    slot = new DeviceAllocator(device, memory_driver(device), AllocatorConfig::of_process(), stream_order);
  }
  return *slot.load();
}

void record_block_stream(const StorageImpl& storage, const Stream& stream) {
  Allocator* owner = storage.allocator();
  if (!owner || !storage.data()) return;
  if (auto* custom = dynamic_cast<CUDAAllocator*>(owner)) {
    custom->record_stream(storage.data(), static_cast<cudaStream_t>(stream.handle));
  } else if (dynamic_cast<CachingAllocator*>(owner)) {
    auto* block = static_cast<Block*>(storage.context());
    block->allocator->record_stream(block, stream.handle);
  }
}

namespace {

// Note [Blocks that are reused too early]: operators tell of the tensors that they are given.
void note_tensor_use(const TensorImpl& tensor, const OpBase& op) {
  const Storage& storage = tensor.storage();
  if (!storage || !storage->data() || storage->allocator() != &caching_allocator()) return;
  auto* block = static_cast<Block*>(storage->context());
  block->allocator->note_use(*block, thread_state.streams[tensor.device().index], op);
}

void watch_streams() {
  stream_order = new StreamOrder;
  rush::detail::note_tensor_use = note_tensor_use;
  devices_to_check |= kCUDA;
}

}  // namespace

void watch_streams_if_asked() {
  const AllocatorConfig& config = AllocatorConfig::of_process();
  if (config.debug && !config.passthrough) watch_streams();
}

bool uses_caching_allocator() { return dynamic_cast<CachingAllocator*>(&allocator(kCUDA)) != nullptr; }

void change_current_allocator(CUDAAllocator* allocator) {
  set_allocator(kCUDA, allocator ? allocator : &caching_allocator());
}

// ---- allocators of one's own ----

namespace {
struct WhereAllocated {
  int device;
  cudaStream_t stream;
};
}  // namespace

void* CUDAAllocator::allocate(size_t nbytes) {
  const int device = thread_state.device;
  return nbytes == 0 ? nullptr : malloc(nbytes, device, thread_state.streams[device]);
}

void CUDAAllocator::deallocate(void* data, size_t nbytes) noexcept {
  const int device = thread_state.device;
  if (data) free(data, nbytes, device, thread_state.streams[device]);
}

Allocation CUDAAllocator::allocate_on(Device device, size_t nbytes) {
  if (nbytes == 0) return {};
  const int index = index_of(device);
  auto where = std::make_unique<WhereAllocated>(WhereAllocated{index, thread_state.streams[index]});
  void* data = malloc(nbytes, index, where->stream);
  RUSH_CHECK_AS(OutOfMemoryError, data, "CUDA out of memory: the allocator in use gave nothing for ", nbytes,
                " bytes on cuda:", index);
  return {data, where.release()};
}

void CUDAAllocator::deallocate(const Allocation& block, size_t nbytes) noexcept {
  if (!block.data) return;
  const std::unique_ptr<WhereAllocated> where(static_cast<WhereAllocated*>(block.context));
  free(block.data, nbytes, where->device, where->stream);
}

// ---- temporaries ----

Scratch::Scratch(size_t nbytes) : nbytes_(nbytes) {
  const Allocation block = allocator(kCUDA).allocate_on(Device(kCUDA, thread_state.device), nbytes);
  data_ = block.data;
  context_ = block.context;
}

Scratch::Scratch(Scratch&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)),
      nbytes_(std::exchange(other.nbytes_, 0)),
      context_(std::exchange(other.context_, nullptr)) {}

Scratch::~Scratch() {
  if (data_) allocator(kCUDA).deallocate({data_, context_}, nbytes_);
}

}  // namespace rush::cuda
