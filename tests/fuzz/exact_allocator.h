// CPU memory in which every access outside a block is noticed: blocks end where a page ends that must not be touched,
// or AddressSanitizer guards them. No block is large, and their sum is not.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "core/device/allocator.h"
#include "core/error/error.h"

#if defined(__SANITIZE_ADDRESS__)
#define RUSH_FUZZ_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define RUSH_FUZZ_ASAN 1
#endif
#endif

namespace fuzz {

class ExactAllocator final : public rush::Allocator {
 public:
  static constexpr size_t kMost = size_t{16} << 20, kAlignment = 64;

  void* allocate(size_t nbytes) override {
    if (nbytes == 0) return nullptr;
    if (nbytes > kMost || stats_.allocated + static_cast<int64_t>(nbytes) > int64_t{8} * static_cast<int64_t>(kMost)) {
      RUSH_THROW(rush::OutOfMemoryError, "the fuzzer lends no more memory: asked for ", nbytes, " bytes");
    }
    void* const data = take(nbytes);
    stats_.allocated += static_cast<int64_t>(nbytes);
    ++stats_.allocations;
    // What is read before it is written is the same in every run.
    std::memset(data, 0x5a, nbytes);
    return data;
  }
  void deallocate(void* data, size_t nbytes) noexcept override {
    if (!data) return;
    stats_.allocated -= static_cast<int64_t>(nbytes);
    give(data, nbytes);
  }
  rush::AllocatorStats stats() const override { return stats_; }
  void empty_cache() override {}

 private:
#ifdef RUSH_FUZZ_ASAN
  static void* take(size_t nbytes) {
    void* data = nullptr;
    if (::posix_memalign(&data, kAlignment, nbytes) != 0) RUSH_THROW(rush::OutOfMemoryError, "out of memory");
    return data;
  }
  static void give(void* data, size_t) { std::free(data); }
#else
  static size_t page() { return static_cast<size_t>(::sysconf(_SC_PAGESIZE)); }
  static size_t rounded(size_t nbytes, size_t to) { return (nbytes + to - 1) / to * to; }

  static void* take(size_t nbytes) {
    const size_t pages = rounded(nbytes, page());
    void* const begin = ::mmap(nullptr, pages + page(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (begin == MAP_FAILED) RUSH_THROW(rush::OutOfMemoryError, "out of memory");
    ::mprotect(static_cast<char*>(begin) + pages, page(), PROT_NONE);
    return static_cast<char*>(begin) + pages - rounded(nbytes, kAlignment);
  }
  static void give(void* data, size_t nbytes) {
    const size_t pages = rounded(nbytes, page());
    ::munmap(static_cast<char*>(data) + rounded(nbytes, kAlignment) - pages, pages + page());
  }
#endif

  rush::AllocatorStats stats_;
};

}  // namespace fuzz
