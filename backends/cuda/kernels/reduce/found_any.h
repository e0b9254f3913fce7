// Questions about a tensor's values that must be answered before an operator goes on.
#pragma once
#include "backends/cuda/graphs/capture.h"
#include "backends/cuda/kernels/launch.h"
#include "backends/cuda/memory/scratch.h"

namespace rush::cuda {

template <class Predicate>
struct MarkIfFound {
  Predicate predicate;
  int* found;
  __device__ void operator()(int64_t i) const {
    if (predicate(i)) *found = 1;
  }
};

// Whether predicate(i) is true for some i in [0, n). Waits for the device: for arguments that are rarely checked, or
// where a wrong one must not be written at all.
template <class Predicate>
bool found_any(const char* op, int64_t n, const Predicate& predicate) {
  if (n == 0) return false;
  check_not_capturing("looking at numbers before they are used");
  const Scratch scratch(sizeof(int));
  const cudaStream_t stream = current_stream();
  RUSH_CUDA_CHECK(cudaMemsetAsync(scratch.data(), 0, sizeof(int), stream));
  for_each_index(op, n, MarkIfFound<Predicate>{predicate, scratch.as<int>()});
  int found = 0;
  RUSH_CUDA_CHECK(cudaMemcpyAsync(&found, scratch.data(), sizeof(int), cudaMemcpyDeviceToHost, stream));
  synchronize_current_stream();
  return found != 0;
}

}  // namespace rush::cuda
