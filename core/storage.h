// The block of memory that a tensor and its views share.
#pragma once
#include <atomic>
#include <cstddef>

#include "core/device/allocator.h"
#include "core/device/device.h"
#include "core/intrusive_ptr.h"
#include "core/macros.h"
#include "core/memory/memory_use.h"

namespace rush {

// Note [Version counters live in the storage]
// Every in-place write to any tensor over this memory counts here, so a tensor saved for the backward pass notices
// writes through its base, its views and its detached aliases alike. PyTorch keeps the counter in the tensor and shares
// it among views; there two tensors over one storage that are not views of each other (`x.data`) count apart. Here they
// do not, which reports a few more writes, and costs no allocation per tensor.
class StorageImpl final : public IntrusiveTarget {
 public:
  using Deleter = void (*)(void* context);

  /// Memory from `source`; null data when `source` is null (the meta device).
  StorageImpl(size_t nbytes, Device device, Allocator* source) : nbytes_(nbytes), device_(device), allocator_(source) {
    if (source) {
      const Allocation block = source->allocate_on(device, nbytes);
      data_ = block.data;
      context_ = block.context;
    } else {
      note_made();
    }
  }
  /// Memory with another owner, which `deleter(context)` tells when it is no longer needed.
  StorageImpl(void* data, size_t nbytes, Device device, Deleter deleter, void* context)
      : data_(data), nbytes_(nbytes), device_(device), deleter_(deleter), context_(context) {}
  ~StorageImpl() override;
  /// Where the memory begins, its size in bytes, and the device that it is on.
  void* data() const { return data_; }
  size_t nbytes() const { return nbytes_; }
  Device device() const { return device_; }
  /// The allocator that the memory came from; null for memory with another owner.
  Allocator* allocator() const { return allocator_; }
  /// What the allocator, or the deleter, knows the memory by.
  void* context() const { return context_; }
  /// See Note [What memory is for].
  MemoryUse use() const { return use_.load(std::memory_order_relaxed); }
  void claim(MemoryUse use) {
    if (RUSH_UNLIKELY(use > this->use())) raise_use(use);
  }
  uint32_t version() const { return version_.load(std::memory_order_relaxed); }  // see the class's Note
  void bump_version() { version_.fetch_add(1, std::memory_order_relaxed); }      // after a write
  /// Whether resize_ may replace the memory: it came from an allocator, or there is none (the meta device).
  bool resizable() const { return !deleter_ && (allocator_ || !data_); }
  /// Trades memory, size and owner with `other`; each keeps its version.
  void swap_memory(StorageImpl& other);
  /// For a copy that stands in for another storage, see Note [In-place operators save a copy].
  void set_version(uint32_t version) { version_.store(version, std::memory_order_relaxed); }

 private:
  void raise_use(MemoryUse use);
  // On the meta device: tells the MemoryEstimate that is being made, if any.
  void note_made();

  void* data_ = nullptr;
  size_t nbytes_;
  Device device_;
  std::atomic<MemoryUse> use_{MemoryUse::Other};
  std::atomic<uint32_t> version_{0};
  Allocator* allocator_ = nullptr;
  Deleter deleter_ = nullptr;
  void* context_ = nullptr;
};

/// The start of a storage's memory, as libtorch wraps it: `storage.data_ptr().get()`. It owns nothing.
class DataPtr {
 public:
  DataPtr(void* data, Device device) : data_(data), device_(device) {}
  void* get() const { return data_; }                 // null where there are no bytes
  Device device() const { return device_; }           // that the memory is on
  operator bool() const { return data_ != nullptr; }  // get() is not null

 private:
  void* data_;
  Device device_;
};

/// A handle on a StorageImpl; copies share it. c10::Storage.
class Storage : public intrusive_ptr<StorageImpl> {
 public:
  using intrusive_ptr::intrusive_ptr;
  Storage() = default;
  Storage(intrusive_ptr<StorageImpl> impl) : intrusive_ptr(std::move(impl)) {}

  /// Of the handle's storage; there must be one.
  const void* data() const { return get()->data(); }
  void* mutable_data() const { return get()->data(); }
  DataPtr data_ptr() const { return {get()->data(), get()->device()}; }
  size_t nbytes() const { return get()->nbytes(); }
  Device device() const { return get()->device(); }
  DeviceType device_type() const { return device().type; }
  bool is_alias_of(const Storage& other) const { return *this == other; }
  StorageImpl* unsafeGetStorageImpl() const { return get(); }
};

}  // namespace rush
