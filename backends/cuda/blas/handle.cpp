#include "backends/cuda/blas/handle.h"

#include <cstdlib>
#include <map>
#include <string>

#include "backends/cuda/blas/check.h"
#include "backends/cuda/check.h"
#include "backends/cuda/device_properties.h"
#include "backends/cuda/outside_capture.h"
#include "backends/cuda/stream/current_stream.h"

namespace rush::cuda {

void throw_blas_error(cublasStatus_t status, const char* call) {
  const std::string message =
      str(call, " failed", in_operator(), ": ", cublasGetStatusName(status), " (", cublasGetStatusString(status), ")");
  if (status == CUBLAS_STATUS_ALLOC_FAILED) throw OutOfMemoryError(message);
  throw CudaError(message);
}

namespace {

// CUBLAS_WORKSPACE_CONFIG is a list of :KIB:COUNT. Zero when it is not set or makes no sense.
size_t configured_workspace() {
  const char* text = std::getenv("CUBLAS_WORKSPACE_CONFIG");
  size_t total = 0;
  while (text && *text == ':') {
    char* end = nullptr;
    const unsigned long kib = std::strtoul(text + 1, &end, 10);
    if (*end != ':') return 0;
    const unsigned long count = std::strtoul(end + 1, &end, 10);
    total += size_t(kib) * 1024 * count;
    text = end;
  }
  return total;
}

// What NVIDIA recommends: 32 MiB on Hopper, 8 MiB otherwise (cuBLAS documentation, cublasSetWorkspace).
size_t workspace_bytes() {
  static const size_t configured = configured_workspace();
  if (configured > 0) return configured;
  return size_t(current_properties().major >= 9 ? 32 : 8) << 20;
}

std::unique_ptr<BlasState> make_state(int device, cudaStream_t stream) {
  const OutsideCapture relaxed;
  auto state = std::make_unique<BlasState>();
  state->device = device;
  state->stream = stream;
  state->workspace = std::make_unique<Scratch>(workspace_bytes());
  RUSH_CUBLAS_CHECK(cublasCreate(&state->handle));
  RUSH_CUBLAS_CHECK(cublasSetStream(state->handle, stream));
  RUSH_CUBLAS_CHECK(cublasSetWorkspace(state->handle, state->workspace->data(), state->workspace->size()));
  RUSH_CUBLAS_CHECK(cublasSetMathMode(state->handle, state->math));
  RUSH_CUBLAS_CHECK(cublasLtCreate(&state->lt));
  return state;
}

struct StateTable {
  std::mutex mutex;
  std::map<std::pair<int, cudaStream_t>, std::unique_ptr<BlasState>> states;
};

BlasState& current_state() {
  int device = 0;
  RUSH_CUDA_CHECK(cudaGetDevice(&device));
  const cudaStream_t stream = current_stream();
  // Most calls of a thread go to the stream of its last one.
  thread_local BlasState* last = nullptr;
  if (last && last->device == device && last->stream == stream) return *last;
  static StateTable& table = *new StateTable;
  const std::lock_guard<std::mutex> lock(table.mutex);
  auto& state = table.states[{device, stream}];
  if (!state) state = make_state(device, stream);
  return *(last = state.get());
}

}  // namespace

Blas::Blas() : state_(current_state()), lock_(state_.mutex) {}

void Blas::set_math(cublasMath_t math) {
  if (math == state_.math) return;
  RUSH_CUBLAS_CHECK(cublasSetMathMode(state_.handle, math));
  state_.math = math;
}

}  // namespace rush::cuda
