#include "backends/cuda/check.h"

#include "backends/cuda/driver.h"
#include "core/dispatch/op.h"

namespace rush::cuda {

std::string in_operator() {
  const OpBase* op = dispatch_state.device_op;
  return op ? str(", in ", op->name()) : std::string();
}

void throw_failure(const char* call, const std::string& meaning, bool is_out_of_memory) {
  const std::string message = str(call, " failed", in_operator(), ": ", meaning);
  if (is_out_of_memory) throw OutOfMemoryError(message);
  throw CudaError(message);
}

namespace {

// After these every call fails until the process ends.
const char* sticky_hint(cudaError_t status) {
  switch (status) {
    case cudaErrorIllegalAddress:
    case cudaErrorLaunchFailure:
    case cudaErrorMisalignedAddress:
    case cudaErrorIllegalInstruction:
    case cudaErrorAssert:
      return "; an earlier kernel may have caused it (CUDA_LAUNCH_BLOCKING=1 finds which), and this process can use "
             "the GPU no more";
    case cudaErrorNoKernelImageForDevice:
      return "; the library was built for another GPU architecture (CMake's RUSH_CUDA_ARCHITECTURE)";
    default: return "";
  }
}

}  // namespace

void throw_error(cudaError_t status, const char* call) {
  // Takes the error out of the runtime, where CUB would find it after its next launch.
  cudaGetLastError();
  throw_failure(call, str(cudaGetErrorName(status), " (", cudaGetErrorString(status), ")", sticky_hint(status)),
                status == cudaErrorMemoryAllocation);
}

void throw_error(CUresult status, const char* call) {
  const char* name = nullptr;
  const char* meaning = nullptr;
  if (const Driver* driver = driver_or_null()) {
    driver->get_error_name(status, &name);
    driver->get_error_string(status, &meaning);
  }
  throw_failure(call, str(name ? name : "an unknown status", " (", meaning ? meaning : "", ")"),
                status == CUDA_ERROR_OUT_OF_MEMORY);
}

}  // namespace rush::cuda
