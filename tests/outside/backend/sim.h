// A simulated device, "sim:0" and "sim:1": memory of this process that may be touched in its kernels only.
#pragma once
#include <rushlight.h>

namespace sim {

/// Adds the device type, its kernels, and what they lack by falling back to the CPU.
rush::DeviceType add_device();

/// How often kernels of its own were called, and how many there are.
int kernel_calls();
int kernel_count();
/// The device that was started last; -1 before.
int started_device();

}  // namespace sim
