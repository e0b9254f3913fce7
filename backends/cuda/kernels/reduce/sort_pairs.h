// Sorting by CUB's radix sort.
#pragma once
#include <cstdint>

namespace rush::cuda {

// Sorts n pairs ascending by the lowest `bits` bits of their keys, stably. Key is uint32_t or uint64_t, Value int64_t,
// or of keys of 32 bits uint32_t.
template <class Key, class Value>
void sort_pairs(const Key* keys, Key* sorted_keys, const Value* values, Value* sorted_values, int64_t n, int bits);

}  // namespace rush::cuda
