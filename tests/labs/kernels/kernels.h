// What lab 10 asks for: four functions of a learner's file, which launch kernels on memory of the device. Sizes are
// 64-bit, and need be no multiples of anything.
#pragma once
#include <cstdint>

namespace rush::labs {

/// out[i] = in[i] for n elements.
void copy(const float* in, float* out, int64_t n);

/// out (columns, rows) is the transpose of in (rows, columns), both contiguous.
void transpose(const float* in, float* out, int64_t rows, int64_t columns);

/// Adds the sum of n elements to *total, to which other streams may add at the same time.
void sum(const float* in, float* total, int64_t n);

/// out = softmax of each row of in (rows, columns): exp(x) / sum(exp(x)), for numbers of any size.
void softmax(const float* in, float* out, int64_t rows, int64_t columns);

}  // namespace rush::labs
