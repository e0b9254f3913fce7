// Errors that only a kernel can see, such as an index out of range or a division by zero.
#pragma once
#include <cstdint>

#include "core/macros.h"

namespace rush::cuda {

// Note [Errors found inside a kernel]
// Stopping a kernel (trap, assert) would make the process's CUDA context unusable. Instead the first thread that finds
// a bad value writes it into a record in pinned memory that both sides see, and the kernel skips the element. The host
// looks at the record when it has waited for the device (item, a copy to the host, synchronize) and throws IndexError
// there, or ValueError where the check names the problem of a number; later calls work. In the launcher:
//
//     const cuda::DeviceCheck check = cuda::device_check("gather");      // a string literal
//     launch_kernel("gather", gather_kernel, shape, ..., check);
//
// and in the kernel:
//
//     if (!RUSH_DEVICE_CHECK(index >= -size && index < size, check, index, size)) return;  // or continue
//
// Numbers of a whole tensor are checked by report_if_any (backends/cuda/kernels/reduce/found_any.h).
struct DeviceErrorRecord {
  unsigned claimed;          // by the first thread that fails
  unsigned ready;            // the rest is written
  const char *op, *problem;  // host pointers, only carried by the device
  int64_t value;             // what was found
  int64_t bound;             // and what it should be below
};

// Goes to the kernel by value.
struct DeviceCheck {
  DeviceErrorRecord* record;
  const char *op, *problem;
};

// For kernels on the current device: of an index, unless `problem` says what is wrong with a number. Both must live as
// long as the program.
DeviceCheck device_check(const char* op, const char* problem = nullptr);

// Called when the host has waited for `device`: throws IndexError or ValueError when a kernel found something, once.
void throw_device_errors(int device);

#ifdef __CUDACC__
// Not inlined: it is never called in a correct program, and registers are dear.
__device__ __noinline__ inline bool report_device_error(const DeviceCheck& check, int64_t value, int64_t bound) {
  DeviceErrorRecord* record = check.record;
  if (atomicCAS(&record->claimed, 0u, 1u) == 0u) {
    record->op = check.op;
    record->problem = check.problem;
    record->value = value;
    record->bound = bound;
    __threadfence_system();
    *static_cast<volatile unsigned*>(&record->ready) = 1u;
  }
  return false;
}
#endif

}  // namespace rush::cuda

/// In device code: `condition`, and when it does not hold, a report of `value` against `bound` by `check`.
#define RUSH_DEVICE_CHECK(condition, check, value, bound) \
  ((condition) || ::rush::cuda::report_device_error(check, static_cast<int64_t>(value), static_cast<int64_t>(bound)))
