#if __has_include(<cusolverDn.h>)
#include "backends/cuda/solver/handle.h"

#include <map>

#include "backends/cuda/check.h"
#include "backends/cuda/stream/current_stream.h"

namespace rush::cuda {

void throw_error(cusolverStatus_t status, const char* call) {
  throw_failure(call, str("cuSOLVER status ", static_cast<int>(status)), status == CUSOLVER_STATUS_ALLOC_FAILED);
}

namespace {

SolverState& state_of_current_device() {
  static auto* table = new std::map<int, SolverState>;
  static std::mutex mutex;
  int device = 0;
  RUSH_CUDA_CHECK(cudaGetDevice(&device));
  const std::lock_guard<std::mutex> lock(mutex);
  SolverState& state = (*table)[device];
  if (!state.handle) {
    RUSH_CUDA_CHECK(cusolverDnCreate(&state.handle));
    RUSH_CUDA_CHECK(cusolverDnCreateParams(&state.params));
  }
  return state;
}

}  // namespace

Solver::Solver() : state_(state_of_current_device()), lock_(state_.mutex) {
  RUSH_CUDA_CHECK(cusolverDnSetStream(state_.handle, current_stream()));
}

}  // namespace rush::cuda
#endif
