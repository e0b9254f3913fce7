#include "backends/cuda/sparse/handle.h"

#include "backends/cuda/check.h"
#include "backends/cuda/stream/state_per_stream.h"

namespace rush::cuda {

void throw_error(cusparseStatus_t status, const char* call) {
  throw_failure(call, str(cusparseGetErrorName(status), " (", cusparseGetErrorString(status), ")"),
                status == CUSPARSE_STATUS_ALLOC_FAILED || status == CUSPARSE_STATUS_INSUFFICIENT_RESOURCES);
}

namespace {

void set_up(SparseState& state) {
  RUSH_CUDA_CHECK(cusparseCreate(&state.handle));
  RUSH_CUDA_CHECK(cusparseSetStream(state.handle, state.stream));
}

}  // namespace

SparseHandle::SparseHandle() : state_(state_of_current_stream<SparseState, set_up>()), lock_(state_.mutex) {}

}  // namespace rush::cuda
