// Tensor cores for the labs' kernels: D += A B of bfloat16 with sums in float32, by all 32 lanes of a warp together.
// nvcc compiles the instructions of PTX; the emulated grid has functions that do the same (tensor_core.cpp).
//
// Note [Fragments of the labs]
// A is (16, 16), B (16, 8) and D (16, 8). Each lane holds some elements of each, its fragments, two numbers of 16 bits
// in a word, the one with the lower index in the lower bits. With g = lane / 4 and t = lane % 4 they are
//   D  rows g and g + 8, columns 2 t and 2 t + 1: [0], [1] in row g, [2], [3] in row g + 8
//   A  word [0]: row g, columns 2 t, 2 t + 1;  [1]: row g + 8, the same columns;  [2], [3]: columns 2 t + 8, 2 t + 9
//   B  word [0]: column g, rows 2 t, 2 t + 1;  [1]: rows 2 t + 8, 2 t + 9
// as "Matrix Fragments for mma.m16n8k16" in the PTX manual has it. load_matrices gets four (8, 8) matrices out of
// shared memory: lane l passes the address of row l % 8 of matrix l / 8, a multiple of 16, and gets elements 2 t and 2
// t + 1 of row g of each; or, transposed, of column g.
#pragma once
#include "tests/labs/grid/kernel.h"

namespace rush::labs {

#ifdef __CUDACC__

/// d += a b (mma.sync.m16n8k16): Note [Fragments of the labs].
__device__ inline void multiply_fragments(float (&d)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

/// Word i is the lane's two elements of matrix i (ldmatrix).
__device__ inline void load_matrices(uint32_t (&words)[4], const __nv_bfloat16* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(words[0]), "=r"(words[1]), "=r"(words[2]), "=r"(words[3])
               : "r"(static_cast<uint32_t>(__cvta_generic_to_shared(row)))
               : "memory");
}

/// The same of the transposes of the matrices.
__device__ inline void load_transposed_matrices(uint32_t (&words)[4], const __nv_bfloat16* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(words[0]), "=r"(words[1]), "=r"(words[2]), "=r"(words[3])
               : "r"(static_cast<uint32_t>(__cvta_generic_to_shared(row)))
               : "memory");
}

#else

// `line` is where the call stands, for reports.
void multiply_fragments(float (&d)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1, int line = __builtin_LINE());
void load_matrices(uint32_t (&words)[4], const __nv_bfloat16* row, int line = __builtin_LINE());
void load_transposed_matrices(uint32_t (&words)[4], const __nv_bfloat16* row, int line = __builtin_LINE());

#endif

}  // namespace rush::labs
