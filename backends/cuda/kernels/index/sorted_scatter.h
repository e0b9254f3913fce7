// Scatters values to offsets; values with the same offset are combined, in the same order each time where it counts.
#pragma once
#include <algorithm>

#include "backends/cuda/kernels/positions.h"
#include "core/ops/index/index.h"

namespace rush::cuda {

// Stands for the offset of an index that was out of range, whose element is skipped.
inline constexpr int64_t kNoOffset = std::numeric_limits<int64_t>::min();

// Slices of a tensor and the values for them. Value (o, j, i) of (outer, n, inner) goes to the element at
// outer.offset(o) + offset(j) + inner.offset(i); there is one for each, or one for all, or one for 2^shift
// neighbouring offsets, where it counts times their weights (n, in opmath_t).
struct ScatterPlan {
  void* to;
  Positions outer, inner;
  const int64_t* offsets;
  int64_t n;
  const void* values;
  bool one_value;
  Positions starts = {};  // what offsets[j] counts from; nothing unless every element has its own index
  int shift = 0;
  const void* weights = nullptr;

  int64_t count() const { return outer.count * n * inner.count; }
  RUSH_HD int64_t columns() const { return outer.count * inner.count; }
#ifdef __CUDACC__
  __device__ int64_t offset(int64_t j) const {
    return offsets[j] == kNoOffset ? kNoOffset : starts.offset(j) + offsets[j];
  }
#endif
};

// The values of an offset are combined so that results repeat: in their order, or by atomic instructions where the
// order makes no difference. Offsets must be below `bound`. `order` is what sort_offsets writes, or null.
void scatter_combined(const char* op, ScalarType dtype, const ScatterPlan& plan, int64_t bound, IndexWrite write,
                      const int64_t* order = nullptr);

// Writes to `order` (n) the permutation that sorts the offsets.
void sort_offsets(const char* op, const int64_t* offsets, int64_t n, int64_t bound, int64_t* order);

// By atomic instructions: sums of whole numbers of 4 and 8 bytes, and the smallest and largest of all dtypes with an
// order. Returns false, and does nothing, for what depends on the order.
bool scatter_atomically(const char* op, ScalarType dtype, const ScatterPlan& plan, IndexWrite write);

// Those that depend on it: Add and Multiply.
void scatter_sorted(const char* op, ScalarType dtype, const ScatterPlan& plan, int64_t bound, IndexWrite write,
                    const int64_t* order);

}  // namespace rush::cuda
