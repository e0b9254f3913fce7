// What a device's memory holds, in words.
#pragma once
#include <string>

#include "core/memory/memory_use.h"

namespace rush {

/// A table: what tensors hold now, by use, at most so far, and what is reserved beyond it for reuse. Of the device's
/// allocator in this process. torch.cuda.memory_summary.
std::string memory_summary(Device device = get_default_device());

}  // namespace rush
