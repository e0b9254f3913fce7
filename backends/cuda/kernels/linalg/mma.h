// What tensor cores compute with: fragments of 16-bit matrices that the 32 lanes of a warp hold together.
#pragma once
#include "backends/cuda/kernels/pack.h"

namespace rush::cuda {

// Note [Fragments]
// A warp multiplies a (16, 16) by a (16, 8) matrix of 16-bit numbers and adds to a (16, 8) one of float32, m16n8k16 of
// the PTX manual ("Matrix Fragments for mma.m16n8k16"). With g = lane / 4 and t = lane % 4, a lane holds
//   of the sums     rows g and g + 8, columns 2 t and 2 t + 1: [0], [1] and [2], [3]
//   of the left     rows g and g + 8, columns 2 t, 2 t + 1, and those 8 further: words [0] to [3]
//   of the right    rows 2 t, 2 t + 1 and those 8 further of column g: two words
// so that sums, rounded and packed, are a left factor as they lie. Matrices of 8 rows of 16 bytes come from shared
// memory four at a time; lane l gives where row l % 8 of matrix l / 8 begins, aligned to 16 bytes.
//
// Of float32, half as many columns (m16n8k8), a number a word: columns t and t + 4. A left factor's columns may come in
// any order that the right one's rows come in, too: with 2 t, 2 t + 1 for t, t + 4 sums are a left factor again. Tensor
// cores read 10 bits of a significand (TF32), so a number is taken apart into its upper bits and the rest, and three
// products of these give what float32 does but for some 2^-22, as CUTLASS has it (OpMultiplyAddFastF32).

/// How many columns a left factor has.
template <class T>
inline constexpr int kMmaDepth = 32 / sizeof(T);

template <class T>
struct LeftFragment {
  uint32_t words[4];
};
template <>
struct LeftFragment<float> {
  uint32_t upper[4], lower[4];
};

/// x rounded to the bits that a tensor core reads, and what is left of it. (Of an infinity, a NaN.)
__device__ inline void take_apart(uint32_t x, uint32_t& upper, uint32_t& lower) {
  upper = (x + 0x1000u) & 0xffffe000u;
  lower = __float_as_uint(__uint_as_float(x) - __uint_as_float(upper));
}

/// A left factor of the words that a lane holds.
template <class T>
__device__ inline LeftFragment<T> left_fragment(const uint32_t (&words)[4]) {
  LeftFragment<T> left;
#pragma unroll
  for (int w = 0; w < 4; ++w) {
    if constexpr (sizeof(T) == 4) {
      take_apart(words[w], left.upper[w], left.lower[w]);
    } else {
      left.words[w] = words[w];
    }
  }
  return left;
}

/// Lane l gets words 2 (l % 4), + 1 of row l / 4 of each matrix, or of its transpose.
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

/// Begins to copy 4, 8 or 16 bytes from global to shared memory, both aligned; zeros, without reading, where `real` is
/// false.
template <int kBytes>
__device__ inline void copy_async(void* to, const void* from, bool real) {
#if __CUDA_ARCH__ >= 800
  const auto address = static_cast<uint32_t>(__cvta_generic_to_shared(to));
  asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(address), "l"(from), "n"(kBytes),
               "r"(real ? kBytes : 0)
               : "memory");
#endif
}

/// Ends a group of the thread's copies.
__device__ inline void commit_copies() {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

/// Waits until at most `kGroups` of the thread's groups, the last ones, are on their way.
template <int kGroups>
__device__ inline void wait_for_copies() {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.wait_group %0;" ::"n"(kGroups) : "memory");
#endif
}

/// sums += left * right, of words as they are.
template <class T>
__device__ inline void multiply_add_words(float (&sums)[4], const uint32_t (&left)[4], uint32_t right0,
                                          uint32_t right1) {
#if __CUDA_ARCH__ >= 800
  if constexpr (std::is_same_v<T, float>) {
    asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
        : "r"(left[0]), "r"(left[1]), "r"(left[2]), "r"(left[3]), "r"(right0), "r"(right1));
  } else if constexpr (std::is_same_v<T, BFloat16>) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
        : "r"(left[0]), "r"(left[1]), "r"(left[2]), "r"(left[3]), "r"(right0), "r"(right1));
  } else {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
        : "r"(left[0]), "r"(left[1]), "r"(left[2]), "r"(left[3]), "r"(right0), "r"(right1));
  }
#else
  __trap();  // no such instruction: who launches has asked
#endif
}

/// sums += left * right.
template <class T>
__device__ inline void multiply_add(float (&sums)[4], const LeftFragment<T>& left, uint32_t right0, uint32_t right1) {
  if constexpr (std::is_same_v<T, float>) {
    uint32_t upper0, lower0, upper1, lower1;
    take_apart(right0, upper0, lower0);
    take_apart(right1, upper1, lower1);
    multiply_add_words<T>(sums, left.lower, upper0, upper1);
    multiply_add_words<T>(sums, left.upper, lower0, lower1);
    multiply_add_words<T>(sums, left.upper, upper0, upper1);
  } else {
    multiply_add_words<T>(sums, left.words, right0, right1);
  }
}

}  // namespace rush::cuda
