#include "backends/cuda/device_assert.h"

#include <array>
#include <atomic>
#include <mutex>

#include "backends/cuda/check.h"
#include "backends/cuda/outside_capture.h"
#include "backends/cuda/thread_state.h"

namespace rush::cuda {

namespace {

using Records = std::array<std::atomic<DeviceErrorRecord*>, kMaxDevices>;

Records& records() {
  static auto& all = *new Records{};
  return all;
}

DeviceErrorRecord* record_of(int device) {
  std::atomic<DeviceErrorRecord*>& slot = records()[static_cast<size_t>(device)];
  if (DeviceErrorRecord* made = slot.load(std::memory_order_acquire)) return made;
  static std::mutex& mutex = *new std::mutex;
  const std::lock_guard lock(mutex);
  if (!slot.load()) {
    const OutsideCapture relaxed;
    void* memory = nullptr;
    RUSH_CUDA_CHECK(cudaHostAlloc(&memory, sizeof(DeviceErrorRecord), cudaHostAllocMapped | cudaHostAllocPortable));
    slot = new (memory) DeviceErrorRecord{};
  }
  return slot.load();
}

}  // namespace

// With unified addressing, which every 64-bit platform has, the device knows the record by the host's address.
DeviceCheck device_check(const char* op, const char* problem) { return {record_of(thread_state.device), op, problem}; }

void throw_device_errors(int device) {
  DeviceErrorRecord* record = records()[static_cast<size_t>(device)].load(std::memory_order_acquire);
  if (RUSH_LIKELY(!record || std::atomic_ref(record->ready).load(std::memory_order_acquire) == 0)) return;
  const DeviceErrorRecord found = *record;
  record->ready = 0;
  std::atomic_ref(record->claimed).store(0, std::memory_order_release);
  if (found.problem) {
    RUSH_THROW(ValueError, found.op, ": ", found.problem, " (found by a kernel on cuda:", device, ")");
  }
  RUSH_THROW(IndexError, found.op, ": index out of range in self: index ", found.value, " is out of bounds for size ",
             found.bound, " (found by a kernel on cuda:", device, ")");
}

}  // namespace rush::cuda
