// The definition of sort_pairs, for the files that instantiate it: each takes a while to compile.
#pragma once
#include <cub/device/device_radix_sort.cuh>

#include "backends/cuda/check.h"
#include "backends/cuda/kernels/reduce/sort_pairs.h"
#include "backends/cuda/memory/scratch.h"
#include "backends/cuda/stream/current_stream.h"

namespace rush::cuda {

template <class Key, class Value>
void sort_pairs(const Key* keys, Key* sorted_keys, const Value* values, Value* sorted_values, int64_t n, int bits) {
  if (n == 0) return;
  size_t bytes = 0;
  RUSH_CUDA_CHECK(cub::DeviceRadixSort::SortPairs(nullptr, bytes, keys, sorted_keys, values, sorted_values, n, 0, bits,
                                                  current_stream()));
  const Scratch memory(bytes);
  RUSH_CUDA_CHECK(cub::DeviceRadixSort::SortPairs(memory.data(), bytes, keys, sorted_keys, values, sorted_values, n, 0,
                                                  bits, current_stream()));
}

}  // namespace rush::cuda
