// What the hardware is, asked once per device.
#pragma once
#include <cuda_runtime_api.h>

namespace rush::cuda {

// Of the current device: multiProcessorCount, sharedMemPerBlockOptin, major, minor, ...
const cudaDeviceProp& current_properties();
// Throws ValueError when there is no such device.
const cudaDeviceProp& properties(int device);

}  // namespace rush::cuda
