// cuSOLVER's handle, and the check of its statuses.
#pragma once
#include <cusolverDn.h>

#include <mutex>

#include "core/error/error.h"

namespace rush::cuda {

// Throws a CudaError naming the call, the status and the operator that this thread called last; OutOfMemoryError for a
// status that says so.
[[noreturn]] RUSH_COLD void throw_solver_error(cusolverStatus_t status, const char* call);

struct SolverState {
  cusolverDnHandle_t handle = nullptr;
  cusolverDnParams_t params = nullptr;
  std::mutex mutex;
};

// The current device's handle, locked and set to the current stream. Handles are never destroyed, see Note [Handles of
// libraries].
class Solver {
 public:
  Solver();
  Solver(const Solver&) = delete;

  cusolverDnHandle_t handle() const { return state_.handle; }
  cusolverDnParams_t params() const { return state_.params; }

 private:
  SolverState& state_;
  std::lock_guard<std::mutex> lock_;
};

}  // namespace rush::cuda

// Throws CudaError unless `call`, an expression of type cusolverStatus_t, succeeds.
#define RUSH_CUSOLVER_CHECK(call)                                       \
  do {                                                                  \
    const cusolverStatus_t rush_solver_status = (call);                 \
    if (RUSH_UNLIKELY(rush_solver_status != CUSOLVER_STATUS_SUCCESS)) { \
      ::rush::cuda::throw_solver_error(rush_solver_status, #call);      \
    }                                                                   \
  } while (false)
