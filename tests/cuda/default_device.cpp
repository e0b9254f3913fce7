#include "tests/cuda/default_device.h"

#include <algorithm>
#include <bit>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "backends/cuda/check.h"
#include "backends/cuda/devices.h"
#include "backends/cuda/memory/memory.h"
#include "core/device/device.h"
#include "core/dispatch/op.h"
#include "tests/compute_sanitizer.h"

namespace rush::testing {

namespace {

// Pinned memory of the host, which the GPU reads and writes over the bus: no page ever moves. It is taken in chunks and
// handed out in powers of two, because the driver takes long; under compute-sanitizer, which knows only what the driver
// gives out, each block is the driver's, and goes to requests of its own size. A block that was freed goes to requests
// of its own stream only: a kernel of the call that freed it may still use it, and another thread has not waited.
class MappedAllocator : public cuda::CUDAAllocator {
 public:
  void* malloc(size_t nbytes, int /*device*/, cudaStream_t stream) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    const size_t size = size_of_block(nbytes);
    std::vector<void*>& kept = free_[{stream, size}];
    if (kept.empty() && (size >= kChunk || under_compute_sanitizer())) kept.push_back(from_driver(size));
    if (kept.empty()) {
      if (left_ < size) {
        chunk_ = static_cast<char*>(from_driver(kChunk));
        left_ = kChunk;
      }
      kept.push_back(chunk_);
      chunk_ += size;
      left_ -= size;
    }
    void* data = kept.back();
    kept.pop_back();
    return data;
  }
  void free(void* data, size_t nbytes, int /*device*/, cudaStream_t stream) noexcept override {
    const std::lock_guard<std::mutex> lock(mutex_);
    free_[{stream, size_of_block(nbytes)}].push_back(data);
  }

 private:
  static constexpr size_t kSmallest = 512, kChunk = size_t{64} << 20;

  static size_t size_of_block(size_t nbytes) {
    return under_compute_sanitizer() ? nbytes : std::bit_ceil(std::max(nbytes, kSmallest));
  }

  static void* from_driver(size_t size) {
    void* data = nullptr;
    const cudaError_t status = cudaHostAlloc(&data, size, cudaHostAllocPortable | cudaHostAllocMapped);
    RUSH_CHECK_AS(OutOfMemoryError, status == cudaSuccess, "no pinned memory of ", size, " bytes");
    return data;
  }

  std::mutex mutex_;
  std::map<std::pair<cudaStream_t, size_t>, std::vector<void*>> free_;
  char* chunk_ = nullptr;
  size_t left_ = 0;
};

}  // namespace

bool use_cuda_by_default(bool is_readable) {
  if (!cuda::is_available()) return false;
  set_default_device(kCUDA);
  if (!is_readable) return true;
  wait_for_each_call = true;
  devices_to_check |= kCUDA;
  static auto* allocator = new MappedAllocator;  // outlives every tensor
  cuda::change_current_allocator(allocator);
  return true;
}

}  // namespace rush::testing
