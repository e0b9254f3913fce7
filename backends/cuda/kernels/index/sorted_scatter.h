// Scatters values to offsets; values with the same offset are combined, in the same order each time where it counts.
#pragma once
#include <algorithm>

#include "backends/cuda/kernels/positions.h"
#include "core/ops/index/index.h"

namespace rush::cuda {

// Stands for the offset of an index that was out of range, whose element is skipped.
inline constexpr int64_t kNoOffset = std::numeric_limits<int64_t>::min();

// Slices of a tensor and the values for them. Value (o, j, i) of (outer, n, inner) goes to the element at
// outer.offset(o) + offsets[j] + inner.offset(i); there is one for each, or one for all.
struct ScatterPlan {
  void* to;
  Positions outer, inner;
  const int64_t* offsets;
  int64_t n;
  const void* values;
  bool one_value;

  int64_t count() const { return outer.count * n * inner.count; }
};

// The values of an offset are combined so that results repeat: in their order, or by atomic instructions where the
// order makes no difference. Offsets must be below `bound`. `order` is what sort_offsets writes, or null.
void scatter_combined(const char* op, ScalarType dtype, const ScatterPlan& plan, int64_t bound, IndexWrite write,
                      const int64_t* order = nullptr);

// Writes to `order` (n) the permutation that sorts the offsets.
void sort_offsets(const char* op, const int64_t* offsets, int64_t n, int64_t bound, int64_t* order);

// Note [Chunks of sorted offsets]
// The sorted offsets are split into chunks. A thread loops over a chunk and combines the values of each group of equal
// offsets. It writes the result of a group that is within the chunk. If a group crosses chunks, every chunk writes its
// partial result to scratch memory: to `tails` in the chunk where the group starts, and to `heads` in the others. A
// second kernel combines these. Many threads therefore share a large group, always with the same chunks: their length
// depends on the sizes alone. Few values are split into shorter chunks, so that there are threads enough for a GPU.
inline int64_t chunk_length(int64_t n, int64_t columns) {
  constexpr int64_t kManyThreads = 32768;
  return n > 64 * kManyThreads ? 64 : std::clamp<int64_t>(n * std::min(columns, kManyThreads) / kManyThreads, 8, 64);
}

// By atomic instructions: sums of whole numbers of 4 and 8 bytes, and the smallest and largest of all dtypes with an
// order. Returns false, and does nothing, for what depends on the order.
bool scatter_atomically(const char* op, ScalarType dtype, const ScatterPlan& plan, IndexWrite write);

void scatter_sorted_add(const char* op, ScalarType dtype, const ScatterPlan& plan, const int64_t* order);
void scatter_sorted_multiply(const char* op, ScalarType dtype, const ScatterPlan& plan, const int64_t* order);

}  // namespace rush::cuda
