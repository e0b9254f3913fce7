// The two ways to learn what the GPU did: Note [What a device did].
#pragma once
#include <string>
#include <vector>

#include "core/profiler/device_activity.h"

namespace rush::cuda {

/// CUPTI's records of every kernel, copy and call. Null, with the reason in `trouble`, where CUPTI is missing or
/// another tool holds it.
profiler::ActivitySource* cupti_source(std::string& trouble);

/// Times between events of the streams: of what an operator did as a whole, idle time that its launches took included.
profiler::ActivitySource& event_source();

/// What NVML reads of the device: how busy it is, its power and its temperature. Empty where the driver's library is
/// missing; without what it does not tell.
std::vector<profiler::Counter> nvml_counters(int device);

/// The first, or the second with a warning that says why. RUSH_CUPTI=0 asks for the second.
profiler::ActivitySource& activity_source();

}  // namespace rush::cuda
