// DistributedError: what goes wrong between processes.
#pragma once
#include "core/error/error.h"

namespace rush {

/// Processes are started, joined or used in a way that cannot work, or the library that connects them reports an error.
/// Mirrors c10::DistError, Python's torch.distributed.DistError.
class DistributedError : public Error {
 public:
  using Error::Error;
};

}  // namespace rush

#define RUSH_CHECK_DISTRIBUTED(condition, ...) RUSH_CHECK_AS(::rush::DistributedError, condition, __VA_ARGS__)
