// cuSOLVER's handle, and the check of its statuses.
#pragma once
#include <cusolverDn.h>

#include <mutex>

#include "backends/cuda/check.h"

namespace rush::cuda {

// RUSH_CUDA_CHECK checks cuSOLVER's statuses too.
[[noreturn]] RUSH_COLD void throw_error(cusolverStatus_t status, const char* call);

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
