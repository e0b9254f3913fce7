// Matrix products on tensor cores: the fragments that the 32 lanes of a warp hold, and the instructions that use them.
#pragma once
#include "backends/cuda/kernels/pack.h"

namespace rush::cuda {

// Note [Fragments]
// A warp computes D = A B + D for A (16, 16) and B (16, 8) of 16 bits and an accumulator D (16, 8) of float32. The
// instruction is m16n8k16 ("Matrix Fragments for mma.m16n8k16" in the PTX manual). With g = lane / 4 and t = lane % 4,
// a lane holds
//   accumulator   rows g and g + 8, columns 2 t and 2 t + 1: [0], [1] and [2], [3]
//   A fragment    rows g and g + 8, columns 2 t, 2 t + 1, 2 t + 8 and 2 t + 9: words [0] to [3]
//   B fragment    column g, rows 2 t, 2 t + 1, 2 t + 8 and 2 t + 9: two words
// Two neighbouring accumulators, rounded to 16 bits and packed, are therefore an A fragment of the next product: no
// lane needs another lane's numbers. ldmatrix loads four (8, 8) matrices of 16 bits from shared memory; lane l passes
// the address of row l % 8 of matrix l / 8, which must be aligned to 16 bytes.
//
// float32 has K = 8 (m16n8k8) and one number a word: a lane holds columns t and t + 4 of A. The order of K is free as
// long as A and B agree on it. If columns 2 t and 2 t + 1 take the place of t and t + 4, an accumulator is an A
// fragment here, too. Tensor cores read 10 bits of the significand (TF32). A number is therefore split into its upper
// bits and the remainder, and three products of these give float32's result within about 2^-22, as in CUTLASS
// (OpMultiplyAddFastF32).

template <class T>
inline constexpr int kMmaK = 32 / sizeof(T);

template <class T>
struct FragmentA {
  uint32_t words[4];
};
template <>
struct FragmentA<float> {
  uint32_t upper[4], lower[4];
};

// Rounds x to TF32 (upper); lower is the remainder, which is NaN if x is infinite.
__device__ inline void split_tf32(uint32_t x, uint32_t& upper, uint32_t& lower) {
  upper = (x + 0x1000u) & 0xffffe000u;
  lower = __float_as_uint(__uint_as_float(x) - __uint_as_float(upper));
}

template <class T>
__device__ inline FragmentA<T> fragment_a(const uint32_t (&words)[4]) {
  FragmentA<T> a;
#pragma unroll
  for (int w = 0; w < 4; ++w) {
    if constexpr (sizeof(T) == 4) {
      split_tf32(words[w], a.upper[w], a.lower[w]);
    } else {
      a.words[w] = words[w];
    }
  }
  return a;
}

// Loads four (8, 8) matrices of 16-bit numbers, or their transposes: lane l gets numbers 2 (l % 4) and 2 (l % 4) + 1 of
// row l / 4 of each.
template <bool transposed, class T>
__device__ inline void load_matrices(uint32_t (&words)[4], const T* row) {
  const auto address = static_cast<uint32_t>(__cvta_generic_to_shared(row));
  if constexpr (transposed) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(words[0]), "=r"(words[1]), "=r"(words[2]), "=r"(words[3])
                 : "r"(address)
                 : "memory");
  } else {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(words[0]), "=r"(words[1]), "=r"(words[2]), "=r"(words[3])
                 : "r"(address)
                 : "memory");
  }
}

// Starts an asynchronous copy of 4, 8 or 16 aligned bytes from global to shared memory. If `real` is false, it writes
// zeros and reads nothing.
template <int kBytes>
__device__ inline void copy_async(void* to, const void* from, bool real) {
#if __CUDA_ARCH__ >= 800
  const auto address = static_cast<uint32_t>(__cvta_generic_to_shared(to));
  asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(address), "l"(from), "n"(kBytes),
               "r"(real ? kBytes : 0)
               : "memory");
#endif
}

// Closes the group of copies that this thread has started.
__device__ inline void commit_copies() {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

// Waits until at most the last `kGroups` groups of this thread are unfinished.
template <int kGroups>
__device__ inline void wait_for_copies() {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.wait_group %0;" ::"n"(kGroups) : "memory");
#endif
}

// acc += A B, one instruction.
template <class T>
__device__ inline void mma_sync(float (&acc)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
#if __CUDA_ARCH__ >= 800
  if constexpr (std::is_same_v<T, float>) {
    asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+f"(acc[0]), "+f"(acc[1]), "+f"(acc[2]), "+f"(acc[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
  } else if constexpr (std::is_same_v<T, BFloat16>) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+f"(acc[0]), "+f"(acc[1]), "+f"(acc[2]), "+f"(acc[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
  } else {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+f"(acc[0]), "+f"(acc[1]), "+f"(acc[2]), "+f"(acc[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
  }
#else
  __trap();  // the launcher has checked that the GPU has this instruction
#endif
}

// acc += A B; in float32 by three products of TF32 (Note [Fragments]).
template <class T>
__device__ inline void multiply_add(float (&acc)[4], const FragmentA<T>& a, uint32_t b0, uint32_t b1) {
  if constexpr (std::is_same_v<T, float>) {
    uint32_t upper0, lower0, upper1, lower1;
    split_tf32(b0, upper0, lower0);
    split_tf32(b1, upper1, lower1);
    mma_sync<T>(acc, a.lower, upper0, upper1);
    mma_sync<T>(acc, a.upper, lower0, lower1);
    mma_sync<T>(acc, a.upper, upper0, upper1);
  } else {
    mma_sync<T>(acc, a.words, b0, b1);
  }
}

}  // namespace rush::cuda
