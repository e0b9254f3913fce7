// Snapshots of memory as files.
#pragma once
#include <string>
#include <vector>

#include "backends/cuda/memory/history.h"

namespace rush::cuda {

// What torch.cuda.memory._snapshot() returns, pickled: {"segments": [...], "device_traces": [[...], ...]}.
std::string snapshot_as_pickle(const std::vector<DeviceSnapshot>& snapshots);
// One page that needs nothing else: memory over time, and the segments with their blocks.
std::string snapshot_as_html(const std::vector<DeviceSnapshot>& snapshots);

}  // namespace rush::cuda
