// cuSPARSE's handle, and the check of its statuses.
#pragma once
#include <cuda_runtime_api.h>
#include <cusparse.h>

#include <mutex>

#include "backends/cuda/check.h"

namespace rush::cuda {

// RUSH_CUDA_CHECK checks cuSPARSE's statuses too.
[[noreturn]] RUSH_COLD void throw_error(cusparseStatus_t status, const char* call);

struct SparseState {
  cusparseHandle_t handle = nullptr;
  cudaStream_t stream = nullptr;
  int device = 0;
  std::mutex mutex;
};

// The handle of the current device's current stream, locked. Handles are never destroyed, see Note [Handles of
// libraries].
class SparseHandle {
 public:
  SparseHandle();
  SparseHandle(const SparseHandle&) = delete;

  operator cusparseHandle_t() const { return state_.handle; }

 private:
  SparseState& state_;
  std::lock_guard<std::mutex> lock_;
};

}  // namespace rush::cuda
