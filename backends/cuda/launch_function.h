// A launch of what the driver knows a kernel by, for kernels that no compiler's stub stands for.
#pragma once
#include <cuda.h>

#include "backends/cuda/launch_kernel.h"

namespace rush::cuda {

// Launches `function`, of the current device, with the addresses of its parameters. A context must be current: see
// Note [Launches by the driver]. Throws CudaError naming the operator `op` when the launch is refused, or an earlier
// kernel has failed.
void launch_function(const char* op, CUfunction function, const LaunchShape& shape, cudaStream_t stream,
                     void** arguments);

}  // namespace rush::cuda
