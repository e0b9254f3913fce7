// The check of cuBLAS's and cuBLASLt's statuses.
#pragma once
#include <cublas_v2.h>

#include "core/error/error.h"

namespace rush::cuda {

// Throws a CudaError naming the call, the status and its meaning, and the operator that this thread called last;
// OutOfMemoryError for a status that says so.
[[noreturn]] RUSH_COLD void throw_blas_error(cublasStatus_t status, const char* call);

}  // namespace rush::cuda

// Throws CudaError unless `call`, an expression of type cublasStatus_t, succeeds.
#define RUSH_CUBLAS_CHECK(call)                                     \
  do {                                                              \
    const cublasStatus_t rush_blas_status = (call);                 \
    if (RUSH_UNLIKELY(rush_blas_status != CUBLAS_STATUS_SUCCESS)) { \
      ::rush::cuda::throw_blas_error(rush_blas_status, #call);      \
    }                                                               \
  } while (false)
