// Makes the n-th allocation fail: of operator new, and of the memory of tensors on the CPU. It replaces the global
// operator new, so one source file of a program includes it, and the program is one of its own.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>

#include "core/device/allocator.h"
#include "core/error/error.h"

namespace rush::testing {

// From its construction to its end, counts the allocations of all threads and refuses number `at`, counted from 1, or
// with `for_good` that and all that follow. There is one at a time.
class FailingAllocations {
 public:
  static constexpr int64_t kNever = 0;

  explicit FailingAllocations(int64_t at = kNever, bool for_good = false) {
    count_ = 0;
    at_ = at;
    for_good_ = for_good;
    active_ = true;
  }
  ~FailingAllocations() { active_ = false; }
  FailingAllocations(const FailingAllocations&) = delete;
  FailingAllocations& operator=(const FailingAllocations&) = delete;

  int64_t count() const { return count_; }
  // Whether one was refused.
  bool failed() const { return at_ != kNever && count_ >= at_; }

  // Counts one, and says whether to refuse it.
  static bool refuses() noexcept {
    if (!active_) return false;
    const int64_t number = ++count_;
    return at_ != kNever && (for_good_ ? number >= at_ : number == at_);
  }

 private:
  static inline constinit std::atomic<int64_t> count_{0}, at_{kNever};
  static inline constinit std::atomic<bool> for_good_{false}, active_{false};
};

// What tensors on the CPU are made of once it is installed: the memory of the allocator before, or a refusal.
class FailingAllocator final : public Allocator {
 public:
  // Stays until the process ends, as the tensors do that were made meanwhile.
  static void install() {
    static auto* const installed = new FailingAllocator(allocator(kCPU));
    set_allocator(kCPU, installed);
  }

  void* allocate(size_t nbytes) override {
    if (nbytes > 0 && FailingAllocations::refuses()) refuse(nbytes);
    return inner_.allocate(nbytes);
  }
  void deallocate(void* data, size_t nbytes) noexcept override { inner_.deallocate(data, nbytes); }
  Allocation allocate_on(Device device, size_t nbytes) override {
    if (nbytes > 0 && FailingAllocations::refuses()) refuse(nbytes);
    return inner_.allocate_on(device, nbytes);
  }
  void deallocate(const Allocation& block, size_t nbytes) noexcept override { inner_.deallocate(block, nbytes); }
  AllocatorStats stats() const override { return inner_.stats(); }
  void empty_cache() override { inner_.empty_cache(); }

 private:
  explicit FailingAllocator(Allocator& inner) : inner_(inner) {}
  [[noreturn]] static void refuse(size_t nbytes) {
    RUSH_THROW(OutOfMemoryError, "out of memory: the test refuses ", nbytes, " bytes");
  }

  Allocator& inner_;
};

inline void* allocate_or_throw(size_t nbytes, size_t alignment) {
  if (!FailingAllocations::refuses()) {
    const size_t rounded = (nbytes + alignment - 1) / alignment * alignment;
    if (void* data = std::aligned_alloc(alignment, rounded ? rounded : alignment)) return data;
  }
  throw std::bad_alloc();
}

}  // namespace rush::testing

// The other forms of operator new call these; memory of all of them goes back to free. Not inlined: the compiler would
// find that what new has given is freed by another function.
RUSH_NOINLINE void* operator new(size_t nbytes) {
  return rush::testing::allocate_or_throw(nbytes, alignof(std::max_align_t));
}
RUSH_NOINLINE void* operator new(size_t nbytes, std::align_val_t alignment) {
  return rush::testing::allocate_or_throw(nbytes, static_cast<size_t>(alignment));
}
// Under AddressSanitizer this form would be the sanitizer's, whose memory must not go to free.
RUSH_NOINLINE void* operator new(size_t nbytes, const std::nothrow_t&) noexcept {
  try {
    return operator new(nbytes);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}
RUSH_NOINLINE void operator delete(void* data) noexcept { std::free(data); }
RUSH_NOINLINE void operator delete(void* data, size_t) noexcept { std::free(data); }
RUSH_NOINLINE void operator delete(void* data, std::align_val_t) noexcept { std::free(data); }
RUSH_NOINLINE void operator delete(void* data, size_t, std::align_val_t) noexcept { std::free(data); }
