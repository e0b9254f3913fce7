// Arithmetic of sizes, strides and paddings, which callers choose: where a result does not fit an int64 it throws
// ValueError, whose message `op` begins, and never wraps around. Products of whole shapes: checked_numel.
#pragma once
#include <cstdint>

#include "core/error/error.h"

namespace rush {

inline int64_t add_sizes(const char* op, int64_t a, int64_t b) {
  int64_t sum = 0;
  RUSH_CHECK_VALUE(!__builtin_add_overflow(a, b, &sum), op, ": sizes are too large: ", a, " + ", b,
                   " does not fit 64 bits");
  return sum;
}
inline int64_t subtract_sizes(const char* op, int64_t a, int64_t b) {
  int64_t difference = 0;
  RUSH_CHECK_VALUE(!__builtin_sub_overflow(a, b, &difference), op, ": sizes are too large: ", a, " - ", b,
                   " does not fit 64 bits");
  return difference;
}
inline int64_t multiply_sizes(const char* op, int64_t a, int64_t b) {
  int64_t product = 0;
  RUSH_CHECK_VALUE(!__builtin_mul_overflow(a, b, &product), op, ": sizes are too large: ", a, " * ", b,
                   " does not fit 64 bits");
  return product;
}

/// From the first element of a window to its last: dilation (kernel - 1).
inline int64_t window_reach(const char* op, int64_t kernel, int64_t dilation) {
  return multiply_sizes(op, dilation, kernel - 1);
}
/// A size with padding on both sides.
inline int64_t padded_size(const char* op, int64_t size, int64_t padding) {
  return add_sizes(op, size, multiply_sizes(op, padding, 2));
}

}  // namespace rush
