// The size of a compressed 2:4 matrix, by which each kind of device knows its own: Note [Semi-structured matrices].
#pragma once
#include <cstdint>

namespace rush::functors {

// Elements of a row of `columns` that the CPU has compressed: half of the values, then a byte for each four columns.
inline int64_t cpu_words_of_row(int64_t columns, int64_t element_size) {
  return columns / 2 + (columns / 4 + element_size - 1) / element_size;
}

}  // namespace rush::functors
