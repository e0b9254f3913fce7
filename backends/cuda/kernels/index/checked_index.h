// An index that a kernel checks and turns into an offset, see Note [Indexing by offsets] in core/ops/index/index.h.
#pragma once
#include "backends/cuda/device_assert.h"
#include "backends/cuda/kernels/index/sorted_scatter.h"
#include "core/ops/index/index.h"

namespace rush::cuda {

struct CheckedIndex {
  int64_t size, stride;
  bool wraps;
  DeviceCheck check;

  explicit CheckedIndex(const IndexedDim& where)
      : size(where.size), stride(where.stride), wraps(where.wraps), check(device_check(where.op)) {}

#ifdef __CUDACC__
  // kNoOffset for an index out of range, which is reported.
  __device__ int64_t offset(int64_t at) const {
    if (!RUSH_DEVICE_CHECK(at >= (wraps ? -size : 0) && at < size, check, at, size)) return kNoOffset;
    return (at < 0 ? at + size : at) * stride;
  }
#endif
};

}  // namespace rush::cuda
