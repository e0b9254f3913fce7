// A number that the host needs before it can go on, such as the size of a result that depends on the data.
#pragma once
#include "backends/cuda/check.h"
#include "backends/cuda/device_assert.h"
#include "backends/cuda/graphs/capture.h"
#include "backends/cuda/stream/current_stream.h"

namespace rush::cuda {

// Waits for the current stream. Throws IndexError for what kernels before found wrong.
template <class T>
T read_back(const T* on_device) {
  check_not_capturing("reading a number back");
  T value;
  RUSH_CUDA_CHECK(cudaMemcpyAsync(&value, on_device, sizeof(T), cudaMemcpyDeviceToHost, current_stream()));
  synchronize_current_stream();
  int device = 0;
  RUSH_CUDA_CHECK(cudaGetDevice(&device));
  throw_device_errors(device);
  return value;
}

}  // namespace rush::cuda
