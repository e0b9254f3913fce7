// Lab 12, matrix products: a solution. Beyond the ends of a and b the tiles in shared memory hold zeros, which add
// nothing to a sum. The library's own products of float32 and 16 bits are cuBLAS's (backends/cuda/blas/gemm.cpp); its
// products of integers (backends/cuda/kernels/linalg/gemm_integer.cu) and of attention's tiles are kernels.
#include "tests/labs/kernels/matmul.h"

#include "tests/labs/grid/kernel.h"
#include "tests/labs/grid/tensor_core.h"

namespace rush::labs {

constexpr int kWarp = 32;

static unsigned blocks_for(int64_t n, int64_t each) { return static_cast<unsigned>((n + each - 1) / each); }

// ---- one thread an element ----

constexpr int kRows = 8;  // of c, and warps, in a block

// The lanes of a warp have neighbouring columns: they read the same element of a, and neighbours of b.
static __global__ void matmul_naive_kernel(const float* a, const float* b, float* c, int64_t m, int64_t n, int64_t k) {
  const int64_t row = int64_t{blockIdx.y} * kRows + threadIdx.y, column = int64_t{blockIdx.x} * kWarp + threadIdx.x;
  if (row >= m || column >= n) return;
  float sum = 0;
  for (int64_t i = 0; i < k; ++i) sum += a[row * k + i] * b[i * n + column];
  c[row * n + column] = sum;
}

void matmul_naive(const float* a, const float* b, float* c, int64_t m, int64_t n, int64_t k) {
  const dim3 grid(blocks_for(n, kWarp), blocks_for(m, kRows));
  launch(matmul_naive_kernel, grid, dim3(kWarp, kRows))(a, b, c, m, n, k);
}

// ---- tiles in shared memory ----

constexpr int kTile = 32;

// A block computes a tile of 32 x 32 elements. What it reads from global memory it uses 32 times.
static __global__ void matmul_tiled_kernel(const float* a, const float* b, float* c, int64_t m, int64_t n, int64_t k) {
  __shared__ float a_tile[kTile][kTile], b_tile[kTile][kTile];
  const unsigned x = threadIdx.x, y = threadIdx.y;
  const int64_t row = int64_t{blockIdx.y} * kTile + y, column = int64_t{blockIdx.x} * kTile + x;
  float sum = 0;
  for (int64_t first = 0; first < k; first += kTile) {
    a_tile[y][x] = row < m && first + x < k ? a[row * k + first + x] : 0;
    b_tile[y][x] = first + y < k && column < n ? b[(first + y) * n + column] : 0;
    __syncthreads();
#pragma unroll
    for (int i = 0; i < kTile; ++i) sum += a_tile[y][i] * b_tile[i][x];
    __syncthreads();  // the next tiles overwrite what slower threads still read
  }
  if (row < m && column < n) c[row * n + column] = sum;
}

void matmul_tiled(const float* a, const float* b, float* c, int64_t m, int64_t n, int64_t k) {
  const dim3 grid(blocks_for(n, kTile), blocks_for(m, kTile));
  launch(matmul_tiled_kernel, grid, dim3(kTile, kTile))(a, b, c, m, n, k);
}

// ---- a tile for each thread ----

constexpr int kThreads = 256, kBlock = 128;  // a block of threads computes a tile of 128 x 128 elements

// Neighbouring elements of a row of a matrix (rows, columns), as many as fit a Vector; zeros beyond its ends. It is one
// access where each row begins at a multiple of a Vector's size.
template <class Vector, class T>
__device__ Vector read_vector(const T* matrix, int64_t rows, int64_t columns, int64_t row, int64_t column) {
  constexpr int kEach = sizeof(Vector) / sizeof(T);
  Vector vector = {};
  if (row >= rows || column >= columns) return vector;
  const T* at = matrix + row * columns + column;
  if (columns % kEach == 0) return *reinterpret_cast<const Vector*>(at);
  T* elements = reinterpret_cast<T*>(&vector);
#pragma unroll
  for (int e = 0; e < kEach; ++e) {
    if (column + e < columns) elements[e] = at[e];
  }
  return vector;
}

// Writes the elements that are within the matrix.
template <class Vector>
__device__ void write_vector(float* matrix, int64_t rows, int64_t columns, int64_t row, int64_t column, Vector vector) {
  constexpr int kEach = sizeof(Vector) / sizeof(float);
  if (row >= rows || column >= columns) return;
  float* at = matrix + row * columns + column;
  if (columns % kEach == 0) {
    *reinterpret_cast<Vector*>(at) = vector;
    return;
  }
  const float* elements = reinterpret_cast<const float*>(&vector);
#pragma unroll
  for (int e = 0; e < kEach; ++e) {
    if (column + e < columns) at[e] = elements[e];
  }
}

constexpr int kDepth = 8, kEach = 8;  // columns of a in a tile; rows and columns of c that a thread computes

// 8 numbers of a row of a tile, from number 4 `at` and from 64 numbers behind it: neighbouring threads read
// neighbouring vectors.
__device__ inline void read_eight(float (&numbers)[kEach], const float* row, unsigned at) {
#pragma unroll
  for (unsigned half = 0; half < 2; ++half) {
    const float4 four = *reinterpret_cast<const float4*>(row + 4 * at + half * kBlock / 2);
    numbers[4 * half] = four.x;
    numbers[4 * half + 1] = four.y;
    numbers[4 * half + 2] = four.z;
    numbers[4 * half + 3] = four.w;
  }
}

// A thread has rows 4 y to 4 y + 3 of the block's tile and those 64 below, and such columns of x: 64 products for 16
// numbers that it reads. The tile of a is transposed, so that it reads 4 rows at once; 4 more numbers in a row of it
// let the threads of a warp write to different banks.
static __global__ void __launch_bounds__(kThreads, 2)
    matmul_in_registers_kernel(const float* a, const float* b, float* c, int64_t m, int64_t n, int64_t k) {
  __shared__ __align__(16) float a_tile[kDepth][kBlock + 4];
  __shared__ __align__(16) float b_tile[kDepth][kBlock];
  const unsigned thread = threadIdx.x, x = thread % 16, y = thread / 16;
  const unsigned a_row = thread / 2, a_column = thread % 2 * 4, b_row = thread / 32, b_column = thread % 32 * 4;
  const int64_t row = int64_t{blockIdx.y} * kBlock, column = int64_t{blockIdx.x} * kBlock;
  float sums[kEach][kEach] = {};
  float4 of_a = read_vector<float4>(a, m, k, row + a_row, a_column);
  float4 of_b = read_vector<float4>(b, k, n, b_row, column + b_column);
  for (int64_t first = 0; first < k; first += kDepth) {
    __syncthreads();  // slower threads still read the last tiles
    a_tile[a_column][a_row] = of_a.x;
    a_tile[a_column + 1][a_row] = of_a.y;
    a_tile[a_column + 2][a_row] = of_a.z;
    a_tile[a_column + 3][a_row] = of_a.w;
    *reinterpret_cast<float4*>(&b_tile[b_row][b_column]) = of_b;
    __syncthreads();
    // The next tiles are read while these are multiplied.
    of_a = read_vector<float4>(a, m, k, row + a_row, first + kDepth + a_column);
    of_b = read_vector<float4>(b, k, n, first + kDepth + b_row, column + b_column);
#pragma unroll
    for (int d = 0; d < kDepth; ++d) {
      float left[kEach], right[kEach];
      read_eight(left, a_tile[d], y);
      read_eight(right, b_tile[d], x);
#pragma unroll
      for (int i = 0; i < kEach; ++i) {
#pragma unroll
        for (int j = 0; j < kEach; ++j) sums[i][j] += left[i] * right[j];
      }
    }
  }
#pragma unroll
  for (int i = 0; i < kEach; ++i) {
    const int64_t of_c = row + 4 * y + i % 4 + i / 4 * kBlock / 2;
#pragma unroll
    for (int j = 0; j < kEach; j += 4) {
      const float4 four = {sums[i][j], sums[i][j + 1], sums[i][j + 2], sums[i][j + 3]};
      write_vector(c, m, n, of_c, column + 4 * x + j / 4 * kBlock / 2, four);
    }
  }
}

void matmul_in_registers(const float* a, const float* b, float* c, int64_t m, int64_t n, int64_t k) {
  const dim3 grid(blocks_for(n, kBlock), blocks_for(m, kBlock));
  launch(matmul_in_registers_kernel, grid, kThreads)(a, b, c, m, n, k);
}

// ---- tensor cores ----

// A tile of a is 128 x 64, of b 64 x 128; rows have 16 bytes more, which puts the eight rows of a matrix that
// load_matrices reads at once into different banks. Each of the 8 warps computes 64 x 32 elements: 4 x 4 fragments of
// the accumulator.
constexpr int kDepth16 = 64, kPad16 = 8, kEach16 = 8, kFragments = 4;
using TileOfA = __nv_bfloat16[kBlock][kDepth16 + kPad16];
using TileOfB = __nv_bfloat16[kDepth16][kBlock + kPad16];

template <int kLines, int kNumbers>
__device__ void load_tile(__nv_bfloat16 (&tile)[kLines][kNumbers], const __nv_bfloat16* matrix, int64_t rows,
                          int64_t columns, int64_t row, int64_t column) {
  constexpr int kInLine = (kNumbers - kPad16) / kEach16, kOfThread = kLines * kInLine / kThreads;  // vectors
#pragma unroll
  for (int each = 0; each < kOfThread; ++each) {
    const int i = each * kThreads + threadIdx.x, line = i / kInLine, number = i % kInLine * kEach16;
    *reinterpret_cast<uint4*>(&tile[line][number]) =
        read_vector<uint4>(matrix, rows, columns, row + line, column + number);
  }
}

// Adds the product of the tiles to the warp's sums, whose first row and column in the block's tile are given.
__device__ inline void multiply_tiles(float (&sums)[kFragments][kFragments][4], const TileOfA& a_tile,
                                      const TileOfB& b_tile, int row, int column) {
  const int lane = threadIdx.x % kWarp;
#pragma unroll
  for (int d = 0; d < kDepth16; d += 16) {
    uint32_t a[kFragments][4], b[kFragments / 2][4];  // words of b are two fragments
#pragma unroll
    for (int i = 0; i < kFragments; ++i) load_matrices(a[i], &a_tile[row + 16 * i + lane % 16][d + lane / 16 * 8]);
#pragma unroll
    for (int j = 0; j < kFragments / 2; ++j) {
      load_transposed_matrices(b[j], &b_tile[d + lane % 16][column + 16 * j + lane / 16 * 8]);
    }
#pragma unroll
    for (int i = 0; i < kFragments; ++i) {
#pragma unroll
      for (int j = 0; j < kFragments; ++j) {
        multiply_fragments(sums[i][j], a[i], b[j / 2][j % 2 * 2], b[j / 2][j % 2 * 2 + 1]);
      }
    }
  }
}

static __global__ void __launch_bounds__(kThreads, 2)
    matmul_on_tensor_cores_kernel(const __nv_bfloat16* a, const __nv_bfloat16* b, float* c, int64_t m, int64_t n,
                                  int64_t k) {
  __shared__ __align__(16) TileOfA a_tile;
  __shared__ __align__(16) TileOfB b_tile;
  const int warp = threadIdx.x / kWarp, lane = threadIdx.x % kWarp;
  const int row_in_tile = warp % 2 * 64, column_in_tile = warp / 2 * 32;
  const int64_t row = int64_t{blockIdx.y} * kBlock, column = int64_t{blockIdx.x} * kBlock;
  float sums[kFragments][kFragments][4] = {};
  for (int64_t first = 0; first < k; first += kDepth16) {
    load_tile(a_tile, a, m, k, row, first);
    load_tile(b_tile, b, k, n, first, column);
    __syncthreads();
    multiply_tiles(sums, a_tile, b_tile, row_in_tile, column_in_tile);
    __syncthreads();  // the next tiles overwrite what slower warps still read
  }
#pragma unroll
  for (int i = 0; i < kFragments; ++i) {
#pragma unroll
    for (int j = 0; j < kFragments; ++j) {
      const int64_t of_c = row + row_in_tile + 16 * i + lane / 4, at = column + column_in_tile + 8 * j + lane % 4 * 2;
      write_vector(c, m, n, of_c, at, float2{sums[i][j][0], sums[i][j][1]});
      write_vector(c, m, n, of_c + 8, at, float2{sums[i][j][2], sums[i][j][3]});
    }
  }
}

void matmul_on_tensor_cores(const __nv_bfloat16* a, const __nv_bfloat16* b, float* c, int64_t m, int64_t n, int64_t k) {
  const dim3 grid(blocks_for(n, kBlock), blocks_for(m, kBlock));
  launch(matmul_on_tensor_cores_kernel, grid, kThreads)(a, b, c, m, n, k);
}

}  // namespace rush::labs
