// The check of cuDNN's statuses.
#pragma once
#include <cudnn.h>

#include "core/error/error.h"

namespace rush::cuda {

// Throws a CudaError naming the call, the status and its meaning, and the operator that this thread called last.
[[noreturn]] RUSH_COLD void throw_dnn_error(cudnnStatus_t status, const char* call);

}  // namespace rush::cuda

// Throws CudaError unless `call`, an expression of type cudnnStatus_t, succeeds.
#define RUSH_CUDNN_CHECK(call)                                    \
  do {                                                            \
    const cudnnStatus_t rush_dnn_status = (call);                 \
    if (RUSH_UNLIKELY(rush_dnn_status != CUDNN_STATUS_SUCCESS)) { \
      ::rush::cuda::throw_dnn_error(rush_dnn_status, #call);      \
    }                                                             \
  } while (false)
