// RUSH_NCCL_CALL: the one way in which functions of NCCL are called. The library is looked up at run time: a program
// that makes no group needs none.
#pragma once
#include <nccl.h>

#include "core/distributed/distributed_error.h"

namespace rush::cuda {

// clang-format off
#define RUSH_NCCL_FUNCTIONS(_) \
  _(ncclGetErrorString) _(ncclGetLastError) _(ncclGetUniqueId) \
  _(ncclCommInitRank) _(ncclCommSplit) _(ncclCommDestroy) _(ncclCommGetAsyncError) \
  _(ncclAllReduce) _(ncclReduce) _(ncclBroadcast) _(ncclAllGather) _(ncclReduceScatter) \
  _(ncclSend) _(ncclRecv) _(ncclGroupStart) _(ncclGroupEnd)
// clang-format on

struct Nccl {
#define RUSH_DECLARE(name) decltype(&::name) name = nullptr;
  RUSH_NCCL_FUNCTIONS(RUSH_DECLARE)
#undef RUSH_DECLARE
};

/// Throws DistributedError where there is no library, or an old one.
const Nccl& nccl();

/// Throws DistributedError, with NCCL's words for the status, unless it is ncclSuccess.
void check_nccl(ncclResult_t status, const char* call);

}  // namespace rush::cuda

#define RUSH_NCCL_CALL(function, ...) ::rush::cuda::check_nccl(::rush::cuda::nccl().function(__VA_ARGS__), #function)
