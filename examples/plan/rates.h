// What a machine does, for the planner: as specified, from a file, or as measured now.
#pragma once
#include <string>

#include "core/device/device.h"
#include "examples/plan/planner.h"

namespace examples {

/// H200s, whose machines have eight: what measure_rates says of one, in float32, of NCCL between two of one host, and a
/// typical link of 400 Gbit/s for each between hosts.
DeviceRates h200_rates();

/// Of a file that write_rates has written. Throws IOError where it cannot be read, ValueError where a rate is missing
/// or not positive, or another value has a wrong type or is too small.
DeviceRates read_rates(const std::string& path);
void write_rates(const std::string& path, const DeviceRates& rates);

/// Measures for some seconds what every process does while all others do the same: element-wise operators, blocks and
/// AdamW steps of the model's sizes, and all_reduces between all processes, which are taken to be on one machine. Every
/// process calls it, and gets the means of all. There are several.
DeviceRates measure_rates(const TransformerShape& shape, rush::Device device);

}  // namespace examples
