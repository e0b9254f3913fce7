// Lab 10, CUDA kernels: a solution. Each kernel handles the tail, since few sizes are multiples of a block, and
// computes indices in 64 bits. The library's own are templates over dtypes and iterators:
// backends/cuda/kernels/launch.h (copy), view/transpose.h, reduce/reduce_engine.h and nn/softmax.cu there.
#include "tests/labs/kernels/kernels.h"

#include "tests/labs/grid/kernel.h"

namespace rush::labs {

constexpr int kWarp = 32, kThreads = 256;

static unsigned blocks_for(int64_t n, int64_t each) { return static_cast<unsigned>((n + each - 1) / each); }

// ---- copy ----

// Neighbouring threads access neighbouring elements: a warp's request is 4 sectors of 32 bytes.
static __global__ void copy_kernel(const float* in, float* out, int64_t n) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i < n) out[i] = in[i];
}

void copy(const float* in, float* out, int64_t n) {
  launch(copy_kernel, blocks_for(n, kThreads), kThreads)(in, out, n);
}

// ---- transpose ----

constexpr int kTile = 32, kRows = 8;  // a block moves a tile of 32 x 32, 8 rows at a time

// Reads rows of `in` and writes rows of `out`. The tile in shared memory turns one into the other: it is written by
// rows and read by columns. One column more than it needs puts the elements of a column into different banks.
static __global__ void transpose_kernel(const float* in, float* out, int64_t rows, int64_t columns) {
  __shared__ float tile[kTile][kTile + 1];
  const int64_t first_row = static_cast<int64_t>(blockIdx.y) * kTile,
                first_column = static_cast<int64_t>(blockIdx.x) * kTile;
  const unsigned x = threadIdx.x;
  for (unsigned y = threadIdx.y; y < kTile; y += kRows) {
    const int64_t row = first_row + y, column = first_column + x;
    if (row < rows && column < columns) tile[y][x] = in[row * columns + column];
  }
  __syncthreads();
  for (unsigned y = threadIdx.y; y < kTile; y += kRows) {
    const int64_t row = first_row + x, column = first_column + y;
    if (row < rows && column < columns) out[column * rows + row] = tile[x][y];
  }
}

void transpose(const float* in, float* out, int64_t rows, int64_t columns) {
  const dim3 grid(blocks_for(columns, kTile), blocks_for(rows, kTile));
  launch(transpose_kernel, grid, dim3(kTile, kRows))(in, out, rows, columns);
}

// ---- sum ----

struct Add {
  __device__ float operator()(float a, float b) const { return a + b; }
};
struct Larger {
  __device__ float operator()(float a, float b) const { return a > b ? a : b; }
};

// Combines x of all threads of the block, in each of them: first within each warp, then the warps' results, which meet
// in shared memory.
template <class Combine>
__device__ float combine_block(float x, float* of_warp, Combine combine) {
  for (int step = kWarp / 2; step > 0; step /= 2) x = combine(x, __shfl_xor_sync(0xffffffffU, x, step));
  __syncthreads();  // the block may still read what an earlier call left here
  if (threadIdx.x % kWarp == 0) of_warp[threadIdx.x / kWarp] = x;
  __syncthreads();
  x = of_warp[0];
  for (int warp = 1; warp < kThreads / kWarp; ++warp) x = combine(x, of_warp[warp]);
  return x;
}

constexpr int kEach = 16;  // elements of a thread: few atomics, and many reads in flight

static __global__ void sum_kernel(const float* in, float* total, int64_t n) {
  const int64_t first = static_cast<int64_t>(blockIdx.x) * (kThreads * kEach) + threadIdx.x;
  float x = 0;
  for (int e = 0; e < kEach; ++e) {
    const int64_t i = first + e * kThreads;
    if (i < n) x += in[i];
  }
  __shared__ float of_warp[kThreads / kWarp];
  x = combine_block(x, of_warp, Add());
  if (threadIdx.x == 0) atomicAdd(total, x);
}

void sum(const float* in, float* total, int64_t n) {
  launch(sum_kernel, blocks_for(n, kThreads * kEach), kThreads)(in, total, n);
}

// ---- softmax ----

// A block for each row. exp(x - largest) is at most 1, and one of them is 1: neither infinity nor a sum of 0 comes up.
static __global__ void softmax_kernel(const float* in, float* out, int64_t columns) {
  in += blockIdx.x * columns;
  out += blockIdx.x * columns;
  __shared__ float of_warp[kThreads / kWarp];
  float largest = -INFINITY;
  for (int64_t i = threadIdx.x; i < columns; i += kThreads) largest = Larger()(largest, in[i]);
  largest = combine_block(largest, of_warp, Larger());
  float total = 0;
  for (int64_t i = threadIdx.x; i < columns; i += kThreads) total += expf(in[i] - largest);
  total = combine_block(total, of_warp, Add());
  for (int64_t i = threadIdx.x; i < columns; i += kThreads) out[i] = expf(in[i] - largest) / total;
}

void softmax(const float* in, float* out, int64_t rows, int64_t columns) {
  launch(softmax_kernel, static_cast<unsigned>(rows), kThreads)(in, out, columns);
}

}  // namespace rush::labs
