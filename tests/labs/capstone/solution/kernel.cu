// gated_rms_norm in one launch: a block has a row, which it keeps in shared memory between the sum of squares and the
// result.
#include "fused.h"
#include "tests/labs/grid/kernel.h"

namespace rush::labs {

constexpr unsigned kThreads = 128, kWarps = kThreads / 32;

extern __shared__ float shared_memory[];  // the row, then a sum for each warp

// The sum over the block, in every thread.
static __device__ float sum_of_block(float value, float* sums) {
  for (unsigned other = 16; other > 0; other /= 2)
    value += __shfl_xor_sync(0xffffffffU, value, static_cast<int>(other));
  if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = value;
  __syncthreads();
  float total = 0;
  for (unsigned warp = 0; warp < kWarps; ++warp) total += sums[warp];
  return total;
}

static __global__ void gated_rms_norm_kernel(const float* x, const float* gate, const float* weight, float eps,
                                             float* out, int64_t columns) {
  const int64_t row = int64_t{blockIdx.x} * columns;
  float squares = 0;
  for (int64_t i = threadIdx.x; i < columns; i += kThreads) {
    const float g = gate[row + i], z = x[row + i] * g / (1 + expf(-g));
    shared_memory[i] = z;
    squares += z * z;
  }
  const float sum = sum_of_block(squares, shared_memory + columns);
  const float scale = 1 / sqrtf(sum / static_cast<float>(columns) + eps);
  for (int64_t i = threadIdx.x; i < columns; i += kThreads) out[row + i] = shared_memory[i] * scale * weight[i];
}

}  // namespace rush::labs

void capstone::fused(const float* const* inputs, float number, float* out, int64_t rows, int64_t columns) {
  using namespace rush::labs;
  const size_t bytes = (static_cast<size_t>(columns) + kWarps) * sizeof(float);
  launch(gated_rms_norm_kernel, static_cast<unsigned>(rows), kThreads, bytes)(inputs[0], inputs[1], inputs[2], number,
                                                                              out, columns);
}
