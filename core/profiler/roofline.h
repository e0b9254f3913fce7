// What a device can do, as measured, and how near to it operators came.
#pragma once
#include <string>

#include "core/profiler/profiler.h"

namespace rush::profiler {

/// What one device can do at best, as measured.
struct DevicePeaks {
  double bytes_per_second = 0;     // a copy of memory to memory, read and written
  double flops_per_second_16 = 0;  // a product of bfloat16 matrices
  double flops_per_second_32 = 0;  // one of float32 matrices, as the program has set matmul's precision
};

/// Runs a copy and two products, for about a tenth of a second and in half a gigabyte, once for each device. To be
/// called while no profile records.
const DevicePeaks& measured_peaks(Device device);

/// Rows of calls that took the device's time (the CPU's where there is no other), with that of the calls within: GB/s,
/// TFLOP/s, their shares of the peaks, and what bounds the call: "memory", "arithmetic", "wait", "host" (the call takes
/// longer than its kernels), or "latency" (none of these). Needs a profile with `with_flops`. Throws ValueError for
/// peaks that are not positive.
std::string roofline_table(const KeyAverages& averages, const DevicePeaks& peaks, size_t row_limit = 20);

}  // namespace rush::profiler
