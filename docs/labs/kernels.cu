// Lab 10, CUDA kernels: what the functions have to do stands in docs/labs/kernels.md and in
// tests/labs/kernels/kernels.h. Write them in this order; `./rush lab 10` checks them in this order. to_do ends a
// kernel with its text: replace it. A kernel's name stays, its parameters and its launch are yours to change.
#include "tests/labs/kernels/kernels.h"

#include "tests/labs/grid/kernel.h"

namespace rush::labs {

constexpr int kThreads = 256;

// Blocks of `each` elements for n elements.
static unsigned blocks_for(int64_t n, int64_t each) { return static_cast<unsigned>((n + each - 1) / each); }

static __global__ void copy_kernel(const float* in, float* out, int64_t n) {
  to_do("begin here: compute the thread's index, in 64 bits, from blockIdx.x and threadIdx.x, and copy its element");
}
void copy(const float* in, float* out, int64_t n) {
  launch(copy_kernel, blocks_for(n, kThreads), kThreads)(in, out, n);
}

constexpr int kTile = 32, kRows = 8;

// The block (blockIdx.x, blockIdx.y) has the tile that begins in column kTile * blockIdx.x and row kTile * blockIdx.y.
static __global__ void transpose_kernel(const float* in, float* out, int64_t rows, int64_t columns) {
  to_do("next: read a tile of kTile x kTile into shared memory, kRows rows at a time, and write it transposed");
}
void transpose(const float* in, float* out, int64_t rows, int64_t columns) {
  const dim3 grid(blocks_for(columns, kTile), blocks_for(rows, kTile));
  launch(transpose_kernel, grid, dim3(kTile, kRows))(in, out, rows, columns);
}

constexpr int kEach = 16;  // elements that a thread of sum_kernel adds up

static __global__ void sum_kernel(const float* in, float* total, int64_t n) {
  to_do("next: add up the thread's elements, then the block's threads, and add the block's sum to *total");
}
void sum(const float* in, float* total, int64_t n) {
  launch(sum_kernel, blocks_for(n, kThreads * kEach), kThreads)(in, total, n);
}

// A block for each row.
static __global__ void softmax_kernel(const float* in, float* out, int64_t columns) {
  to_do("last: find the row's maximum and the sum of exp(x - maximum), and write exp(x - maximum) / sum");
}
void softmax(const float* in, float* out, int64_t rows, int64_t columns) {
  launch(softmax_kernel, static_cast<unsigned>(rows), kThreads)(in, out, columns);
}

}  // namespace rush::labs
