#include "backends/cuda/blas/handle.h"

#include <cstdlib>
#include <string>

#include "backends/cuda/device_properties.h"
#include "backends/cuda/devices.h"
#include "backends/cuda/graphs/capture.h"
#include "backends/cuda/stream/state_per_stream.h"
#include "backends/cuda/stream/stream.h"
#include "core/dispatch/kernel.h"

namespace rush::cuda {

void throw_error(cublasStatus_t status, const char* call) {
  throw_failure(call, str(cublasGetStatusName(status), " (", cublasGetStatusString(status), ")"),
                status == CUBLAS_STATUS_ALLOC_FAILED);
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
  const bool is_large = !is_available() || current_properties().major >= 9;  // without a GPU, for an estimate
  return size_t(is_large ? 32 : 8) << 20;
}

void set_workspace(const BlasState& state, const Scratch& workspace) {
  RUSH_CUDA_CHECK(cublasSetWorkspace(state.handle, workspace.data(), workspace.size()));
}

void set_up(BlasState& state) {
  RUSH_CUDA_CHECK(cublasCreate(&state.handle));
  RUSH_CUDA_CHECK(cublasSetStream(state.handle, state.stream));
  if (!is_side_stream(state.stream)) {
    state.workspace = std::make_unique<Scratch>(workspace_bytes());
    set_workspace(state, *state.workspace);
  }
  RUSH_CUDA_CHECK(cublasSetMathMode(state.handle, state.math));
  RUSH_CUDA_CHECK(cublasLtCreate(&state.lt));
}

}  // namespace

Blas::Blas() : state_(state_of_current_stream<BlasState, set_up>()), lock_(state_.mutex) {
  if (RUSH_LIKELY(current_capture == nullptr && state_.workspace)) return;
  of_call_.emplace(workspace_bytes());
  set_workspace(state_, *of_call_);
}

Blas::~Blas() {
  // Fails for no pointer that it took before.
  if (of_call_ && state_.workspace)
    static_cast<void>(cublasSetWorkspace(state_.handle, state_.workspace->data(), state_.workspace->size()));
}

void estimate_blas_workspace() {
  static constexpr char owner = 0;
  rush::detail::estimate_kept(&owner, static_cast<int64_t>(workspace_bytes()));
}

void Blas::set_math(cublasMath_t math) {
  if (math == state_.math) return;
  RUSH_CUDA_CHECK(cublasSetMathMode(state_.handle, math));
  state_.math = math;
}

}  // namespace rush::cuda
