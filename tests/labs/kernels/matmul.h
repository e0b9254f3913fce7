// What lab 12 asks for: four functions of a learner's file, which compute c (m, n) = a (m, k) b (k, n) on memory of the
// device. All matrices are contiguous by rows and begin at multiples of 16 bytes. Sizes are 64-bit, and need be no
// multiples of anything; m is at most 500,000.
#pragma once
#include <cstdint>

struct __nv_bfloat16;

namespace rush::labs {

/// A thread computes an element of c.
void matmul_naive(const float* a, const float* b, float* c, int64_t m, int64_t n, int64_t k);

/// A block reads tiles of a and b into shared memory, which all of its threads then use.
void matmul_tiled(const float* a, const float* b, float* c, int64_t m, int64_t n, int64_t k);

/// A thread computes a tile of c, which it holds in registers, and reads 16 bytes at a time.
void matmul_in_registers(const float* a, const float* b, float* c, int64_t m, int64_t n, int64_t k);

/// A warp computes a tile of c on tensor cores, with sums in float32.
void matmul_on_tensor_cores(const __nv_bfloat16* a, const __nv_bfloat16* b, float* c, int64_t m, int64_t n, int64_t k);

}  // namespace rush::labs
