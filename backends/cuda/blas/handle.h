// cuBLAS handles and their workspaces.
#pragma once
#include <cublasLt.h>
#include <cublas_v2.h>
#include <cuda_runtime_api.h>

#include <memory>
#include <mutex>
#include <optional>

#include "backends/cuda/check.h"
#include "backends/cuda/memory/scratch.h"

namespace rush::cuda {

// RUSH_CUDA_CHECK checks cuBLAS's statuses too.
[[noreturn]] RUSH_COLD void throw_error(cublasStatus_t status, const char* call);

// Note [Handles of libraries]
// A library's handle belongs to one stream of one device: it is made when that stream first needs it, together with a
// workspace, and kept as long as the process lives. The table is never destroyed: at exit the driver may be gone
// before a static destructor would run, and it frees everything anyway. Two threads that work on one stream share its
// handle, so a caller of the library must hold the handle's lock. A call that a graph captures gets a workspace of its
// own from the graph's memory, since the graph may run on another stream than the handle's; so does a call on a side
// stream, where only the runs before a capture are, which would else keep 32 MiB for good.
struct BlasState {
  cublasHandle_t handle = nullptr;
  cublasLtHandle_t lt = nullptr;
  std::unique_ptr<Scratch> workspace;  // null for a side stream
  cudaStream_t stream = nullptr;
  cublasMath_t math = CUBLAS_DEFAULT_MATH;
  int device = 0;
  std::mutex mutex;
};

// The handle of the current device's current stream, locked.
class Blas {
 public:
  Blas();
  ~Blas();
  Blas(const Blas&) = delete;

  cublasHandle_t handle() const { return state_.handle; }
  cublasLtHandle_t lt() const { return state_.lt; }
  cudaStream_t stream() const { return state_.stream; }
  int device() const { return state_.device; }
  void* workspace() const { return space().data(); }
  size_t workspace_size() const { return space().size(); }
  // Sets how the next calls compute; calls cuBLAS only if something changes.
  void set_math(cublasMath_t math);

 private:
  const Scratch& space() const { return of_call_ ? *of_call_ : *state_.workspace; }

  BlasState& state_;
  std::lock_guard<std::mutex> lock_;
  std::optional<Scratch> of_call_;
};

// Counts the workspace of a handle in the estimate of memory that is being made.
void estimate_blas_workspace();

}  // namespace rush::cuda
