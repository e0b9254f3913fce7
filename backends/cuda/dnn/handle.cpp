#include "backends/cuda/dnn/handle.h"

#include <map>
#include <memory>

#include "backends/cuda/check.h"
#include "backends/cuda/dnn/check.h"
#include "backends/cuda/outside_capture.h"
#include "backends/cuda/stream/current_stream.h"
#include "core/context.h"

namespace rush::cuda {

void throw_dnn_error(cudnnStatus_t status, const char* call) {
  // cuDNN keeps a sentence about what it refused.
  char detail[512] = "";
  cudnnGetLastErrorString(detail, sizeof(detail));
  const std::string message =
      str(call, " failed", in_operator(), ": ", cudnnGetErrorString(status), *detail ? ": " : "", detail);
  if (status == CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED ||
      status == CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED) {
    throw OutOfMemoryError(message);
  }
  throw CudaError(message);
}

namespace {

struct StateTable {
  std::mutex mutex;
  std::map<std::pair<int, cudaStream_t>, std::unique_ptr<DnnState>> states;
};

std::unique_ptr<DnnState> make_state(int device, cudaStream_t stream) {
  const OutsideCapture relaxed;
  auto state = std::make_unique<DnnState>();
  state->device = device;
  state->stream = stream;
  RUSH_CUDNN_CHECK(cudnnCreate(&state->handle));
  RUSH_CUDNN_CHECK(cudnnSetStream(state->handle, stream));
  return state;
}

DnnState& current_state() {
  int device = 0;
  RUSH_CUDA_CHECK(cudaGetDevice(&device));
  const cudaStream_t stream = current_stream();
  thread_local DnnState* last = nullptr;
  if (last && last->device == device && last->stream == stream) return *last;
  static StateTable& table = *new StateTable;
  const std::lock_guard<std::mutex> lock(table.mutex);
  auto& state = table.states[{device, stream}];
  if (!state) state = make_state(device, stream);
  return *(last = state.get());
}

}  // namespace

Dnn::Dnn() : state_(current_state()), lock_(state_.mutex) {}

bool dnn_enabled_for(ScalarType dtype) { return is_floating_point(dtype) && globalContext().userEnabledCuDNN(); }

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
