// Writing values at offsets, several at one offset, always in the same order.
#pragma once
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

// What is added, multiplied, ... at an offset comes together in the order of the values, so that results repeat.
// Offsets are below `bound`.
void scatter_sorted(const char* op, ScalarType dtype, const ScatterPlan& plan, int64_t bound, IndexWrite write);

// The numbers of the offsets in ascending order of the offsets, into `order` (n).
void sort_offsets(const char* op, const int64_t* offsets, int64_t n, int64_t bound, int64_t* order);

// Note [Chunks of sorted offsets]
// The sorted offsets are cut into chunks of kScatterChunk. A thread walks a chunk and combines the values of each run
// of equal offsets. A run that lies within a chunk is written at once. Of one that goes beyond, every chunk leaves its
// part in scratch memory: `tails` has the part of the chunk where the run starts, `heads` those of the others; a second
// kernel joins them. A run of any length is so shared out to many threads, and cut in the same places every time.
inline constexpr int64_t kScatterChunk = 64;

void scatter_sorted_add(const char* op, ScalarType dtype, const ScatterPlan& plan, const int64_t* order);
void scatter_sorted_multiply(const char* op, ScalarType dtype, const ScatterPlan& plan, const int64_t* order);
void scatter_sorted_extreme(const char* op, ScalarType dtype, const ScatterPlan& plan, const int64_t* order,
                            bool largest);

}  // namespace rush::cuda
