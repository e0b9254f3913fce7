// The loop order and the launch of a reduction, which the host computes once for all functors and dtypes.
#pragma once
#include <cuda_runtime.h>

#include "backends/cuda/kernels/positions.h"
#include "backends/functors/reduce_dims.h"

namespace rush::cuda {

using functors::ReduceDim;
using functors::ReduceDims;

struct ReduceShape {
  ReduceShape(const char* op, const ReduceDims& dims);

  Positions kept, reduced;  // offsets in the input and, for kept dimensions, in the output
  // The innermost dimension if it is kept, otherwise one column.
  bool by_columns = false;
  int64_t columns = 1, column_stride = 1, column_out_stride = 0;
};

struct ReduceLaunch {
  // `lanes`: how many elements a 16-byte access has, or 1 for no wide accesses. Sets the shape of a thread block.
  ReduceLaunch(const ReduceShape& shape, const void* data, int64_t element_size, int lanes);
  // Splits the outputs into chunks and sets the grids, for a kernel of which the device runs `resident` blocks at a
  // time and whose threads have `unroll` accesses in flight.
  void cut(const ReduceShape& shape, int64_t resident, int unroll);

  dim3 grid, block, finish_grid, finish_block;
  int lanes;
  int64_t chunks = 1, chunk;  // how many chunks an output has, and their elements

 private:
  int64_t blocks = 1;  // for all outputs in one chunk each
};

}  // namespace rush::cuda
