// Sorting by CUB's radix sort.
#pragma once
#include <cstdint>

namespace rush::cuda {

// Sorts n pairs ascending by the lowest `bits` bits of their keys, stably. Key is uint32_t or uint64_t.
template <class Key>
void sort_pairs(const Key* keys, Key* sorted_keys, const int64_t* values, int64_t* sorted_values, int64_t n, int bits);

}  // namespace rush::cuda
