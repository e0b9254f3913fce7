#include "backends/cuda/memory/memory_driver.h"

#include <array>
#include <cstdio>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "backends/cuda/check.h"
#include "backends/cuda/driver.h"
#include "backends/cuda/outside_capture.h"
#include "backends/cuda/thread_state.h"
#include "core/device/guard.h"

namespace rush::cuda {

namespace {

class CudaMemoryDriver final : public MemoryDriver {
 public:
  explicit CudaMemoryDriver(int device) : device_(device) {}

  void* allocate(size_t nbytes) override {
    const DeviceGuard guard(here());
    const OutsideCapture relaxed;
    void* data = nullptr;
    const cudaError_t status = cudaMalloc(&data, nbytes);
    if (status == cudaErrorMemoryAllocation) {
      cudaGetLastError();
      return nullptr;
    }
    RUSH_CUDA_CHECK(status);
    return data;
  }
  void free(void* data) override {
    const DeviceGuard guard(here());
    check_unless_unloading(cudaFree(data));
  }
  MemoryInfo info() override {
    const DeviceGuard guard(here());
    MemoryInfo info;
    RUSH_CUDA_CHECK(cudaMemGetInfo(&info.free, &info.total));
    return info;
  }

  void* record_event(void* stream) override {
    const DeviceGuard guard(here());
    cudaEvent_t event = nullptr;
    if (idle_events_.empty()) {
      RUSH_CUDA_CHECK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    } else {
      event = idle_events_.back();
      idle_events_.pop_back();
    }
    RUSH_CUDA_CHECK(cudaEventRecord(event, static_cast<cudaStream_t>(stream)));
    return event;
  }
  bool reached(void* event) override {
    const cudaError_t status = cudaEventQuery(static_cast<cudaEvent_t>(event));
    if (status == cudaErrorNotReady) {
      cudaGetLastError();
      return false;
    }
    check_unless_unloading(status);
    idle_events_.push_back(static_cast<cudaEvent_t>(event));
    return true;
  }
  void wait(void* event) override {
    check_unless_unloading(cudaEventSynchronize(static_cast<cudaEvent_t>(event)));
    idle_events_.push_back(static_cast<cudaEvent_t>(event));
  }

  void poison(void* data, size_t nbytes, void* stream) override {
    const DeviceGuard guard(here());
    // A failure shows at the next call; blocks are freed where nothing can be thrown.
    if (cudaMemsetAsync(data, 0xFF, nbytes, static_cast<cudaStream_t>(stream)) != cudaSuccess) cudaGetLastError();
  }

  void report(const std::string& line) override { std::fprintf(stderr, "%s\n", line.c_str()); }

  size_t granularity() override {
    if (granularity_ == 0) {
      const CUmemAllocationProp wanted = physical();
      RUSH_CUDA_CHECK(driver().allocation_granularity(&granularity_, &wanted, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED));
    }
    return granularity_;
  }
  void* reserve_addresses(size_t nbytes) override {
    const DeviceGuard guard(here());
    const OutsideCapture relaxed;
    make_context();
    CUdeviceptr start = 0;
    if (driver().address_reserve(&start, nbytes, 0, 0, 0) != CUDA_SUCCESS) return nullptr;
    return reinterpret_cast<void*>(start);
  }
  bool map(void* start, size_t nbytes) override {
    const CUmemAllocationProp wanted = physical();
    CUmemGenericAllocationHandle memory{};
    const CUresult status = driver().mem_create(&memory, nbytes, &wanted, 0);
    if (status == CUDA_ERROR_OUT_OF_MEMORY) return false;
    RUSH_CUDA_CHECK(status);
    const auto address = reinterpret_cast<CUdeviceptr>(start);
    const CUresult mapped = driver().mem_map(address, nbytes, 0, memory, 0);
    // The mapping keeps the memory alive; so does nothing, when it failed.
    const CUresult released = driver().mem_release(memory);
    RUSH_CUDA_CHECK(mapped);
    RUSH_CUDA_CHECK(released);
    CUmemAccessDesc access{};
    access.location = wanted.location;
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    RUSH_CUDA_CHECK(driver().set_access(address, nbytes, &access, 1));
    return true;
  }
  void unmap(void* start, size_t nbytes) override {
    RUSH_CUDA_CHECK(driver().mem_unmap(reinterpret_cast<CUdeviceptr>(start), nbytes));
  }

 private:
  Device here() const { return Device(kCUDA, device_); }

  CUmemAllocationProp physical() const {
    CUmemAllocationProp wanted{};
    wanted.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    wanted.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    wanted.location.id = device_;
    return wanted;
  }

  // The driver's own functions do not make the runtime's context, as the runtime's do.
  static void make_context() { RUSH_CUDA_CHECK(cudaFree(nullptr)); }

  // A process that ends has its memory taken back anyway, and the driver may be gone before the last tensor.
  static void check_unless_unloading(cudaError_t status) {
    if (status != cudaErrorCudartUnloading) RUSH_CUDA_CHECK(status);
  }

  int device_;
  size_t granularity_ = 0;
  std::vector<cudaEvent_t> idle_events_;
};

}  // namespace

MemoryDriver& memory_driver(int device) {
  static std::array<CudaMemoryDriver*, kMaxDevices>& drivers = *new std::array<CudaMemoryDriver*, kMaxDevices>{};
  static std::mutex& mutex = *new std::mutex;
  const std::lock_guard lock(mutex);
  CudaMemoryDriver*& driver = drivers[static_cast<size_t>(device)];
  if (!driver) driver = new CudaMemoryDriver(device);
  return *driver;
}

}  // namespace rush::cuda
