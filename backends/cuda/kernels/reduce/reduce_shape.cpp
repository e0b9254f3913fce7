#include "backends/cuda/kernels/reduce/reduce_shape.h"

#include <algorithm>
#include <limits>

#include "backends/cuda/device_properties.h"

namespace rush::cuda {

namespace {

constexpr int64_t kThreads = 256;
constexpr int64_t kMaxBlocks = std::numeric_limits<int32_t>::max();

int64_t power_of_two_at_least(int64_t n) {
  int64_t power = 1;
  while (power < n) power *= 2;
  return power;
}

bool divides_all(int64_t lanes, const Positions& positions, int first) {
  for (int d = first; d < positions.dims; ++d) {
    if (positions.dim[d].stride % lanes != 0) return false;
  }
  return true;
}

// Whether rows that are reduced consist of whole aligned 16-byte accesses.
bool has_whole_rows(const ReduceShape& g, bool aligned, int64_t lanes) {
  return aligned && g.reduced.dim[0].size % lanes == 0 && divides_all(lanes, g.kept, 0) &&
         divides_all(lanes, g.reduced, 1);
}

// Whether 16-byte accesses are possible. A single contiguous range that is reduced need not be aligned.
bool is_vectorised(const ReduceShape& g, bool aligned, int64_t lanes) {
  if (lanes == 1) return false;
  if (g.by_columns) {
    return aligned && g.column_stride == 1 && g.columns % lanes == 0 && divides_all(lanes, g.kept, 0) &&
           divides_all(lanes, g.reduced, 0);
  }
  if (g.reduced.dims == 0 || g.reduced.dim[0].stride != 1) return false;
  return g.reduced.dims == 1 || has_whole_rows(g, aligned, lanes);
}

}  // namespace

ReduceShape::ReduceShape(const char* op, const ReduceDims& dims) {
  const ReduceDims merged = functors::coalesced(dims);
  by_columns = !merged.empty() && !merged[0].reduced;
  if (by_columns) {
    columns = merged[0].size;
    column_stride = merged[0].stride;
    column_out_stride = merged[0].out_stride;
  }
  for (size_t d = by_columns ? 1 : 0; d < merged.size(); ++d) {
    const ReduceDim& next = merged[d];
    (next.reduced ? reduced : kept).append(op, {next.size, next.stride, next.out_stride});
  }
  kept.prepare();
  reduced.prepare();
}

ReduceLaunch::ReduceLaunch(const ReduceShape& g, const void* data, int64_t element_size, int wide) {
  const bool aligned = reinterpret_cast<uintptr_t>(data) % static_cast<uintptr_t>(wide * element_size) == 0;
  lanes = is_vectorised(g, aligned, wide) ? wide : 1;
  int64_t across = 1;
  if (g.by_columns) {
    // 32 threads read 512 bytes of a row; where a column is short, more, so that each has some of its elements.
    const int64_t rows = std::clamp<int64_t>(power_of_two_at_least((g.reduced.count + 3) / 4), 1, kThreads / 32);
    across = std::min<int64_t>(kThreads / rows, power_of_two_at_least((g.columns + lanes - 1) / lanes));
    blocks = g.kept.count * ((g.columns + across * lanes - 1) / (across * lanes));
  } else {
    // Some accesses for every thread, and a whole warp at least where there are as many elements.
    const int64_t accesses = (g.reduced.count + lanes - 1) / lanes;
    across =
        std::min(kThreads, power_of_two_at_least(std::max<int64_t>(accesses / 8, std::min<int64_t>(accesses, 32))));
    if (lanes > 1 && !has_whole_rows(g, aligned, lanes)) across = std::max<int64_t>(across, lanes);  // see rows_kernel
    blocks = (g.kept.count + kThreads / across - 1) / (kThreads / across);
  }
  block = dim3(static_cast<unsigned>(across), static_cast<unsigned>(kThreads / across));
}

// The fewest chunks whose thread blocks fill at least three quarters of their waves. (If there are slightly more blocks
// than run at a time, the last ones run alone; and every chunk has a cost of its own.) Chunks of rows cost little, and
// several waves of them balance the load.
void ReduceLaunch::cut(const ReduceShape& g, int64_t resident, int unroll) {
  // Below this many elements a chunk is not worth its threads.
  const int64_t least = g.by_columns ? block.y * 8 : int64_t{block.x} * lanes * 8;
  const int64_t most = std::min<int64_t>(std::max<int64_t>(g.reduced.count / least, 1), 65535);
  double fullest = 0;
  for (int64_t waves = g.by_columns ? 1 : 3; waves <= 4 && fullest < 0.75; ++waves) {
    const int64_t fitting = std::min(most, resident * waves / blocks);
    const double filled = static_cast<double>(fitting * blocks) / static_cast<double>(resident * waves);
    if (filled <= fullest) continue;
    fullest = filled;
    chunks = fitting;
  }
  chunk = (g.reduced.count + chunks - 1) / chunks;
  // A chunk is a multiple of what a block loads at once, with `unroll` accesses of each thread in flight.
  const int64_t round = unroll * (g.by_columns ? block.y : int64_t{block.x} * lanes);
  chunk = (chunk + round - 1) / round * round;
  chunks = chunk == 0 ? 1 : std::max<int64_t>(1, (g.reduced.count + chunk - 1) / chunk);

  grid = dim3(static_cast<unsigned>(std::min(blocks, kMaxBlocks)), static_cast<unsigned>(chunks));
  const int64_t outputs = g.kept.count * g.columns;
  const int64_t finishing = std::min(kThreads, power_of_two_at_least(chunks));
  finish_block = dim3(static_cast<unsigned>(finishing), static_cast<unsigned>(kThreads / finishing));
  finish_grid = dim3(static_cast<unsigned>(std::min(kMaxBlocks, (outputs * finishing + kThreads - 1) / kThreads)));
}

}  // namespace rush::cuda
