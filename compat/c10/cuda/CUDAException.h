// Checks of what CUDA's functions return, in programs that call them.
#pragma once
#include <cuda_runtime_api.h>

#include "torch/types.h"

#define C10_CUDA_CHECK(call)                                                                   \
  do {                                                                                         \
    const cudaError_t c10_cuda_error = call;                                                   \
    RUSH_CHECK_AS(::rush::CudaError, c10_cuda_error == cudaSuccess,                            \
                  "CUDA error: ", cudaGetErrorString(c10_cuda_error), ", returned by " #call); \
  } while (false)
#define C10_CUDA_KERNEL_LAUNCH_CHECK() C10_CUDA_CHECK(cudaGetLastError())
#define AT_CUDA_CHECK(call) C10_CUDA_CHECK(call)
