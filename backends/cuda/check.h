// The checks of CUDA's statuses. Every call of the runtime, the driver or a library goes through RUSH_CUDA_CHECK;
// launch_kernel checks a launch.
#pragma once
#include <cuda.h>
#include <cuda_runtime_api.h>

#include "backends/cuda/error.h"

namespace rush::cuda {

// Throw a CudaError naming the call, the status and its meaning, and the operator that this thread called last;
// OutOfMemoryError for a status that says so. Each library's stands beside its handle.
[[noreturn]] RUSH_COLD void throw_error(cudaError_t status, const char* call);
[[noreturn]] RUSH_COLD void throw_error(CUresult status, const char* call);

// The body of each throw_error: "`call` failed, in aten::mul.Tensor: `meaning`".
[[noreturn]] RUSH_COLD void throw_failure(const char* call, const std::string& meaning, bool is_out_of_memory);

// ", in aten::mul.Tensor" for the operator that this thread called last on a GPU; empty when there was none. For the
// messages of other libraries' checks.
std::string in_operator();

}  // namespace rush::cuda

/// Throws CudaError unless `call` succeeds: a status of the runtime, the driver or a library, which is 0 then.
#define RUSH_CUDA_CHECK(call)                                     \
  do {                                                            \
    const auto rush_cuda_status = (call);                         \
    if (RUSH_UNLIKELY(static_cast<int>(rush_cuda_status) != 0)) { \
      ::rush::cuda::throw_error(rush_cuda_status, #call);         \
    }                                                             \
  } while (false)
