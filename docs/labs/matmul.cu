// Lab 12, matrix products: what the functions have to do stands in docs/labs/matmul.md and in
// tests/labs/kernels/matmul.h. Write them in this order; `./rush lab 12` checks them in this order. to_do ends a kernel
// with its text: replace it. A kernel's name stays, its parameters and its launch are yours to change.
#include "tests/labs/kernels/matmul.h"

#include "tests/labs/grid/kernel.h"
#include "tests/labs/grid/tensor_core.h"

namespace rush::labs {

constexpr int kWarp = 32;

// Blocks of `each` rows or columns for n of them.
static unsigned blocks_for(int64_t n, int64_t each) { return static_cast<unsigned>((n + each - 1) / each); }

constexpr int kRows = 8;  // of c in a block

static __global__ void matmul_naive_kernel(const float* a, const float* b, float* c, int64_t m, int64_t n, int64_t k) {
  to_do("begin here: compute the thread's row and column, in 64 bits, and the sum over k of its products");
}
void matmul_naive(const float* a, const float* b, float* c, int64_t m, int64_t n, int64_t k) {
  const dim3 grid(blocks_for(n, kWarp), blocks_for(m, kRows));
  launch(matmul_naive_kernel, grid, dim3(kWarp, kRows))(a, b, c, m, n, k);
}

constexpr int kTile = 32;

static __global__ void matmul_tiled_kernel(const float* a, const float* b, float* c, int64_t m, int64_t n, int64_t k) {
  to_do("next: read a tile of a and one of b into shared memory, add their products, and go on to the next tiles of k");
}
void matmul_tiled(const float* a, const float* b, float* c, int64_t m, int64_t n, int64_t k) {
  const dim3 grid(blocks_for(n, kTile), blocks_for(m, kTile));
  launch(matmul_tiled_kernel, grid, dim3(kTile, kTile))(a, b, c, m, n, k);
}

// A block of 256 threads computes 128 x 128 elements of c, each thread 8 x 8 of them.
constexpr int kThreads = 256, kBlock = 128;

static __global__ void __launch_bounds__(kThreads, 2)
    matmul_in_registers_kernel(const float* a, const float* b, float* c, int64_t m, int64_t n, int64_t k) {
  to_do("next: hold 8 x 8 sums in registers, and for each step of k read 8 numbers of a and 8 of b from shared memory");
}
void matmul_in_registers(const float* a, const float* b, float* c, int64_t m, int64_t n, int64_t k) {
  const dim3 grid(blocks_for(n, kBlock), blocks_for(m, kBlock));
  launch(matmul_in_registers_kernel, grid, kThreads)(a, b, c, m, n, k);
}

// Each of the block's 8 warps computes 64 x 32 elements of c.
static __global__ void __launch_bounds__(kThreads, 2)
    matmul_on_tensor_cores_kernel(const __nv_bfloat16* a, const __nv_bfloat16* b, float* c, int64_t m, int64_t n,
                                  int64_t k) {
  to_do("last: load fragments of a and b from the tiles in shared memory, and multiply them by multiply_fragments");
}
void matmul_on_tensor_cores(const __nv_bfloat16* a, const __nv_bfloat16* b, float* c, int64_t m, int64_t n, int64_t k) {
  const dim3 grid(blocks_for(n, kBlock), blocks_for(m, kBlock));
  launch(matmul_on_tensor_cores_kernel, grid, kThreads)(a, b, c, m, n, k);
}

}  // namespace rush::labs
