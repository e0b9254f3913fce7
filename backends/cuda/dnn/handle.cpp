#include "backends/cuda/dnn/handle.h"

#include "backends/cuda/devices.h"
#include "backends/cuda/stream/state_per_stream.h"
#include "core/device/context.h"

namespace rush::cuda {

void throw_error(cudnnStatus_t status, const char* call) {
  // cuDNN keeps a sentence about what it refused.
  char detail[512] = "";
  cudnnGetLastErrorString(detail, sizeof(detail));
  throw_failure(call, str(cudnnGetErrorString(status), *detail ? ": " : "", detail),
                status == CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED ||
                    status == CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED);
}

namespace {

void set_up(DnnState& state) {
  RUSH_CUDA_CHECK(cudnnCreate(&state.handle));
  RUSH_CUDA_CHECK(cudnnSetStream(state.handle, state.stream));
}

}  // namespace

Dnn::Dnn() : state_(state_of_current_stream<DnnState, set_up>()), lock_(state_.mutex) {}

bool dnn_enabled_for(ScalarType dtype) {
  return is_floating_point(dtype) && globalContext().userEnabledCuDNN() && is_available();
}

bool dnn_deterministic() { return globalContext().deterministicCuDNN() || globalContext().deterministicAlgorithms(); }

cudnnDataType_t dnn_type(ScalarType dtype) {
  switch (dtype) {
    case kFloat16: return CUDNN_DATA_HALF;
    case kBFloat16: return CUDNN_DATA_BFLOAT16;
    case kFloat64: return CUDNN_DATA_DOUBLE;
    default: return CUDNN_DATA_FLOAT;
  }
}

}  // namespace rush::cuda
