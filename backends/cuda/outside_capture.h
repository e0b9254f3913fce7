// Whether a stream is being captured in a graph, and calls that must not become part of one: those that allocate memory
// on their own, such as the creation of a library's handle.
#pragma once
#include <cuda_runtime_api.h>

#include "backends/cuda/check.h"
#include "backends/cuda/memory/active_pool.h"

namespace rush::cuda {

inline bool is_capturing(cudaStream_t stream) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  RUSH_CUDA_CHECK(cudaStreamIsCapturing(stream, &status));
  return status != cudaStreamCaptureStatusNone;
}

// While it lives, this thread may free memory that a stream being captured would otherwise refuse. For destructors,
// which do not throw.
class RelaxedCapture {
 public:
  RelaxedCapture() { static_cast<void>(cudaThreadExchangeStreamCaptureMode(&mode_)); }
  ~RelaxedCapture() { static_cast<void>(cudaThreadExchangeStreamCaptureMode(&mode_)); }
  RelaxedCapture(const RelaxedCapture&) = delete;

 private:
  cudaStreamCaptureMode mode_ = cudaStreamCaptureModeRelaxed;
};

// While it lives, this thread may make calls that a stream being captured in a graph would otherwise refuse, and what
// it allocates outlives the graph.
class OutsideCapture {
 public:
  OutsideCapture() {
    RUSH_CUDA_CHECK(cudaThreadExchangeStreamCaptureMode(&mode_));
    active_pool = {};
  }
  ~OutsideCapture() {
    active_pool = pool_;
    static_cast<void>(cudaThreadExchangeStreamCaptureMode(&mode_));
  }
  OutsideCapture(const OutsideCapture&) = delete;

 private:
  cudaStreamCaptureMode mode_ = cudaStreamCaptureModeRelaxed;
  ActivePool pool_ = active_pool;
};

}  // namespace rush::cuda
