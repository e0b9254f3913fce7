// Combining the accumulators of the threads of a block, in an order that depends on the block's shape alone.
#pragma once
#include <cstdint>

namespace rush::cuda {

// Any trivially copyable value through `shuffle`, which passes one word between the lanes of a warp.
template <class T, class Shuffle>
__device__ T shuffle_words(const T& value, const Shuffle& shuffle) {
  constexpr int kWords = (sizeof(T) + 3) / 4;
  uint32_t words[kWords] = {};
  memcpy(words, &value, sizeof(T));
#pragma unroll
  for (int w = 0; w < kWords; ++w) words[w] = shuffle(words[w]);
  T other;
  memcpy(&other, words, sizeof(T));
  return other;
}

// From the lane whose number differs in the bits of `mask`.
template <class T>
__device__ T shuffle_xor(const T& value, int mask) {
  return shuffle_words(value, [=](uint32_t word) { return __shfl_xor_sync(0xffffffffu, word, mask); });
}

// From the lane `delta` before.
template <class T>
__device__ T shuffle_up(const T& value, int delta) {
  return shuffle_words(value, [=](uint32_t word) { return __shfl_up_sync(0xffffffffu, word, delta); });
}

template <class T>
__device__ T shuffle_from(const T& value, int lane) {
  return shuffle_words(value, [=](uint32_t word) { return __shfl_sync(0xffffffffu, word, lane); });
}

// f.combine over the threads of the caller's row of the block (those with its threadIdx.y). blockDim.x is a power of
// two, the block a multiple of 32 threads; all of them call. Every thread gets the result.
template <class Acc, class F>
__device__ Acc combine_row(Acc acc, const F& f) {
  const int width = static_cast<int>(blockDim.x);
#pragma unroll
  for (int mask = 16; mask > 0; mask /= 2) {
    if (mask < width) acc = f.combine(acc, shuffle_xor(acc, mask));
  }
  if (width <= 32) return acc;
  __shared__ alignas(16) unsigned char memory[32 * sizeof(Acc)];
  Acc* warps = reinterpret_cast<Acc*>(memory);
  const int per_row = width / 32;
  if (threadIdx.x % 32 == 0) warps[threadIdx.y * per_row + threadIdx.x / 32] = acc;
  __syncthreads();
  // Every warp combines the warps' results by itself, and takes its first lane's so that all have the same.
  Acc total = warps[threadIdx.y * per_row + threadIdx.x % per_row];
  for (int mask = per_row / 2; mask > 0; mask /= 2) total = f.combine(total, shuffle_xor(total, mask));
  total = shuffle_from(total, 0);
  __syncthreads();
  return total;
}

}  // namespace rush::cuda
