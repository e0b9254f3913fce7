#include "tests/cuda/default_device.h"

#include <cstdlib>
#include <map>
#include <mutex>
#include <vector>

#include "backends/cuda/check.h"
#include "backends/cuda/memory/memory.h"
#include "core/cuda.h"
#include "core/device.h"

namespace rush::testing {

namespace {

// Keeps what is freed, by size: the driver takes long to make managed memory. As every call waits for its kernels, a
// block that is free is no longer in use.
class ManagedAllocator : public cuda::CUDAAllocator {
 public:
  void* malloc(size_t nbytes, int /*device*/, cudaStream_t /*stream*/) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    std::vector<void*>& kept = free_[rounded(nbytes)];
    if (!kept.empty()) {
      void* data = kept.back();
      kept.pop_back();
      return data;
    }
    void* data = nullptr;
    const cudaError_t status = cudaMallocManaged(&data, rounded(nbytes));
    RUSH_CHECK_AS(OutOfMemoryError, status == cudaSuccess, "no managed memory of ", nbytes, " bytes");
    return data;
  }
  void free(void* data, size_t nbytes, int /*device*/, cudaStream_t /*stream*/) noexcept override {
    const std::lock_guard<std::mutex> lock(mutex_);
    free_[rounded(nbytes)].push_back(data);
  }

 private:
  static size_t rounded(size_t nbytes) { return (nbytes + 511) / 512 * 512; }
  std::mutex mutex_;
  std::map<size_t, std::vector<void*>> free_;
};

}  // namespace

bool use_cuda_by_default() {
  ::setenv("CUDA_LAUNCH_BLOCKING", "1", 1);  // before the driver is asked anything
  if (!cuda::is_available()) return false;
  static auto* allocator = new ManagedAllocator;  // outlives every tensor
  cuda::change_current_allocator(allocator);
  set_default_device(kCUDA);
  return true;
}

}  // namespace rush::testing
