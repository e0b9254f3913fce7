// launch_kernel, which launches all our kernels.
#pragma once
#include <cuda_runtime.h>

#include <cstddef>
#include <type_traits>

#include "backends/cuda/stream/current_stream.h"

namespace rush::cuda {

// Note [Launches by the driver]
// kernel<<<grid, block, shared, stream>>>(arguments...) is a call of CUDA's runtime: it keeps the configuration until
// the kernel's stub asks for it, finds what the driver knows the kernel by in a table of all kernels, and keeps the
// status until a caller asks for it. launch_kernel finds the kernel among those that this thread launched lately, and
// calls the driver, which takes 0.26 us less of some 3.9 (an H100, a host of 2.1 GHz) and leaves more of our code in
// the processor's caches: docs/performance.md.

// How many blocks, of how many threads, with how many bytes of dynamic shared memory.
struct LaunchShape {
  dim3 grid;
  dim3 block;
  size_t shared = 0;
};

namespace detail {
void launch_kernel(const char* op, const void* kernel, const LaunchShape& shape, cudaStream_t stream, void** arguments);
}  // namespace detail

// kernel<<<shape..., stream>>>(arguments...). Throws CudaError naming the operator `op` when the launch is refused, or
// an earlier kernel has failed.
template <class... Parameters>
void launch_kernel_on(cudaStream_t stream, const char* op, void (*kernel)(Parameters...), const LaunchShape& shape,
                      const std::type_identity_t<Parameters>&... arguments) {
  void* addresses[] = {const_cast<void*>(static_cast<const void*>(&arguments))...};
  detail::launch_kernel(op, reinterpret_cast<const void*>(kernel), shape, stream, addresses);
}

// The same on the current stream.
template <class... Parameters>
void launch_kernel(const char* op, void (*kernel)(Parameters...), const LaunchShape& shape,
                   const std::type_identity_t<Parameters>&... arguments) {
  launch_kernel_on(current_stream(), op, kernel, shape, arguments...);
}

}  // namespace rush::cuda
