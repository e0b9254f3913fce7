#include "backends/cuda/memory/pinned_allocator.h"

#include <algorithm>
#include <array>
#include <bit>
#include <deque>
#include <mutex>
#include <vector>

#include "backends/cuda/check.h"
#include "backends/cuda/graphs/capture.h"
#include "backends/cuda/memory/context_keeper.h"
#include "backends/cuda/outside_capture.h"
#include "core/device/event.h"

namespace rush::cuda {

namespace {

constexpr size_t kSmallest = 512;

struct HostBlock {
  void* data = nullptr;
  size_t size = 0;  // a power of two
  size_t requested = 0;
  std::vector<Event> uses;  // one for each stream that used it
  std::vector<Stream> streams;
};

class PinnedAllocator final : public ContextKeeper {
 public:
  Allocation allocate_on(Device /*device*/, size_t nbytes) override {
    if (nbytes == 0) return {};
    RUSH_CHECK_AS(OutOfMemoryError, nbytes < (size_t{1} << 48), "out of memory: asked for ", nbytes,
                  " bytes of pinned memory");
    const size_t size = std::bit_ceil(std::max(nbytes, kSmallest));
    const std::lock_guard lock(mutex_);
    if (captures_under_way == 0) collect_reached();
    auto& kept = free_[static_cast<size_t>(std::countr_zero(size))];
    HostBlock* block = nullptr;
    if (kept.empty()) {
      block = from_driver(size, nbytes);
    } else {
      block = kept.back();
      kept.pop_back();
    }
    block->requested = nbytes;
    stats_.allocated += static_cast<int64_t>(nbytes);
    stats_.max_allocated = std::max(stats_.max_allocated, stats_.allocated);
    ++stats_.allocations;
    return {block->data, block};
  }

  void deallocate(const Allocation& allocation, size_t nbytes) noexcept override {
    if (!allocation.data) return;
    auto* block = static_cast<HostBlock*>(allocation.context);
    const std::lock_guard lock(mutex_);
    stats_.allocated -= static_cast<int64_t>(nbytes);
    if (block->uses.empty()) {
      keep(block);
    } else {
      waiting_.push_back(block);
    }
  }

  AllocatorStats stats() const override {
    const std::lock_guard lock(mutex_);
    AllocatorStats stats = stats_;
    stats.cache_hits = stats.allocations - system_calls_;
    return stats;
  }

  void empty_cache() override {
    const std::lock_guard lock(mutex_);
    if (captures_under_way == 0) release_kept();
  }

  void record_use(HostBlock* block, const Stream& stream) {
    const std::lock_guard lock(mutex_);
    const auto at = std::find(block->streams.begin(), block->streams.end(), stream);
    if (at != block->streams.end()) {
      block->uses[static_cast<size_t>(at - block->streams.begin())].record(stream);
      return;
    }
    Event event;
    event.record(stream);
    block->uses.push_back(std::move(event));
    block->streams.push_back(stream);
  }

 private:
  HostBlock* from_driver(size_t size, size_t nbytes) {
    const OutsideCapture relaxed;
    void* data = nullptr;
    cudaError_t status = cudaHostAlloc(&data, size, cudaHostAllocPortable);
    if (status == cudaErrorMemoryAllocation) {
      cudaGetLastError();
      if (captures_under_way == 0) release_kept();
      status = cudaHostAlloc(&data, size, cudaHostAllocPortable);
    }
    RUSH_CHECK_AS(OutOfMemoryError, status != cudaErrorMemoryAllocation, "out of memory: could not pin ", nbytes,
                  " bytes; ", stats_.allocated, " are in use by tensors");
    RUSH_CUDA_CHECK(status);
    ++system_calls_;
    stats_.reserved += static_cast<int64_t>(size);
    stats_.max_reserved = std::max(stats_.max_reserved, stats_.reserved);
    auto* block = new HostBlock;
    block->data = data;
    block->size = size;
    return block;
  }

  void keep(HostBlock* block) {
    block->uses.clear();
    block->streams.clear();
    free_[static_cast<size_t>(std::countr_zero(block->size))].push_back(block);
  }

  // Moves the blocks whose copies are done from waiting to kept.
  void collect_reached() {
    for (size_t i = 0; i < waiting_.size();) {
      HostBlock* block = waiting_[i];
      const bool done = std::all_of(block->uses.begin(), block->uses.end(), [](const Event& e) { return e.query(); });
      if (!done) {
        ++i;
        continue;
      }
      waiting_[i] = waiting_.back();
      waiting_.pop_back();
      keep(block);
    }
  }

  void release_kept() {
    collect_reached();
    for (auto& kept : free_) {
      for (HostBlock* block : kept) {
        RUSH_CUDA_CHECK(cudaFreeHost(block->data));
        stats_.reserved -= static_cast<int64_t>(block->size);
        delete block;
      }
      kept.clear();
    }
  }

  mutable std::mutex mutex_;
  std::array<std::vector<HostBlock*>, 64> free_;  // by the logarithm of their size
  std::vector<HostBlock*> waiting_;
  AllocatorStats stats_;
  int64_t system_calls_ = 0;
};

PinnedAllocator& instance() {
  // Never destroyed: tensors in static variables are freed after everything else.
  static auto& allocator = *new PinnedAllocator;
  return allocator;
}

}  // namespace

Allocator& pinned_allocator() { return instance(); }

void record_pinned_use(const StorageImpl& storage, const Stream& stream) {
  if (storage.allocator() != &instance() || !storage.data()) return;
  if (current_capture) return current_capture->keep(storage);
  instance().record_use(static_cast<HostBlock*>(storage.context()), stream);
}

bool is_pinned(const void* data) {
  cudaPointerAttributes attributes{};
  const cudaError_t status = cudaPointerGetAttributes(&attributes, data);
  if (status != cudaSuccess) {
    cudaGetLastError();
    return false;
  }
  return attributes.type == cudaMemoryTypeHost;
}

}  // namespace rush::cuda
