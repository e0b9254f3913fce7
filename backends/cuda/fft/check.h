// The check of cuFFT's statuses.
#pragma once
#include <cufft.h>

#include "core/error/error.h"

namespace rush::cuda {

// Throws a CudaError naming the call, the status and its meaning, and the operator that this thread called last;
// OutOfMemoryError for a status that says so.
[[noreturn]] RUSH_COLD void throw_fft_error(cufftResult status, const char* call);

}  // namespace rush::cuda

// Throws CudaError unless `call`, an expression of type cufftResult, succeeds.
#define RUSH_CUFFT_CHECK(call)                               \
  do {                                                       \
    const cufftResult rush_fft_status = (call);              \
    if (RUSH_UNLIKELY(rush_fft_status != CUFFT_SUCCESS)) {   \
      ::rush::cuda::throw_fft_error(rush_fft_status, #call); \
    }                                                        \
  } while (false)
