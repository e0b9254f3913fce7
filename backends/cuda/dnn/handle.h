// cuDNN handles, and what cuDNN calls things.
#pragma once
#include <cudnn.h>

#include <mutex>

#include "backends/cuda/check.h"
#include "core/scalar_type.h"

namespace rush::cuda {

// RUSH_CUDA_CHECK checks cuDNN's statuses too.
[[noreturn]] RUSH_COLD void throw_error(cudnnStatus_t status, const char* call);

// One for each stream of each device: see Note [Handles of libraries] in backends/cuda/blas/handle.h.
struct DnnState {
  cudnnHandle_t handle = nullptr;
  cudaStream_t stream = nullptr;
  int device = 0;
  std::mutex mutex;
};

// The handle of the current device's current stream, locked.
class Dnn {
 public:
  Dnn();
  Dnn(const Dnn&) = delete;

  cudnnHandle_t handle() const { return state_.handle; }
  cudaStream_t stream() const { return state_.stream; }
  int device() const { return state_.device; }

 private:
  DnnState& state_;
  std::lock_guard<std::mutex> lock_;
};

// Whether cuDNN computes with this dtype, and is to be used at all. Not without a GPU, in an estimate of memory.
bool dnn_enabled_for(ScalarType dtype);
// Whether only algorithms may be used that give the same bits every time.
bool dnn_deterministic();
// The dtype's name in cuDNN, for the floating dtypes.
cudnnDataType_t dnn_type(ScalarType dtype);

}  // namespace rush::cuda
