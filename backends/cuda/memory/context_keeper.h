// An allocator that remembers the contexts of its memory for callers that keep none.
#pragma once
#include <mutex>
#include <unordered_map>

#include "core/device/allocator.h"

namespace rush::cuda {

class ContextKeeper : public Allocator {
 public:
  using Allocator::deallocate;

  void* allocate(size_t nbytes) final {
    const Allocation allocation = allocate_on(Device(kCUDA), nbytes);
    const std::lock_guard lock(mutex_);
    if (allocation.data) contexts_[allocation.data] = allocation.context;
    return allocation.data;
  }
  void deallocate(void* data, size_t nbytes) noexcept final {
    if (!data) return;
    void* context = nullptr;
    {
      const std::lock_guard lock(mutex_);
      context = contexts_.extract(data).mapped();
    }
    deallocate(Allocation{data, context}, nbytes);
  }

 private:
  std::mutex mutex_;
  std::unordered_map<void*, void*> contexts_;  // by address
};

}  // namespace rush::cuda
