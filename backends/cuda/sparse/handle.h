// cuSPARSE's handle, and the check of its statuses.
#pragma once
#include <cuda_runtime_api.h>
#include <cusparse.h>

#include <mutex>

#include "core/error/error.h"

namespace rush::cuda {

// Throws a CudaError naming the call, the status and its meaning, and the operator that this thread called last;
// OutOfMemoryError for a status that says so.
[[noreturn]] RUSH_COLD void throw_sparse_error(cusparseStatus_t status, const char* call);

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

// Throws CudaError unless `call`, an expression of type cusparseStatus_t, succeeds.
#define RUSH_CUSPARSE_CHECK(call)                                       \
  do {                                                                  \
    const cusparseStatus_t rush_sparse_status = (call);                 \
    if (RUSH_UNLIKELY(rush_sparse_status != CUSPARSE_STATUS_SUCCESS)) { \
      ::rush::cuda::throw_sparse_error(rush_sparse_status, #call);      \
    }                                                                   \
  } while (false)
