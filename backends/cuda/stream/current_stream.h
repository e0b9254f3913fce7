// The stream that this thread's work goes to.
#pragma once
#include <cuda_runtime_api.h>

namespace rush::cuda {

// The current stream of the current device: every launch and every library call uses it. Null stands for the device's
// default stream.
cudaStream_t current_stream();
// That of another device.
cudaStream_t current_stream(int device);
// Waits on the host for the current stream of the current device.
void synchronize_current_stream();

}  // namespace rush::cuda
