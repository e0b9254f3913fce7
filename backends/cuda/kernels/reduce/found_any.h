// Questions about a tensor's numbers.
#pragma once
#include "backends/cuda/device_assert.h"
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

// Whether predicate(i) is true for some i in [0, n). Waits for the device.
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

template <class Predicate>
struct ReportIfAny {
  Predicate predicate;
  DeviceCheck check;
  __device__ void operator()(int64_t i) const { (void)RUSH_DEVICE_CHECK(!predicate(i), check, 0, 0); }
};

// Leaves the ValueError "op: problem" for the next call that waits for the device, if predicate(i) is true for some i
// in [0, n): see Note [Errors found inside a kernel]. It does not wait itself, so a graph can capture it.
template <class Predicate>
void report_if_any(const char* op, const char* problem, int64_t n, const Predicate& predicate) {
  if (n > 0) for_each_index(op, n, ReportIfAny<Predicate>{predicate, device_check(op, problem)});
}

}  // namespace rush::cuda
