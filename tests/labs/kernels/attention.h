// What lab 13 asks for: two functions of a learner's file, on memory of the device. All tensors are contiguous, and
// begin at multiples of 16 bytes; sizes need be no multiples of anything.
#pragma once
#include <cstdint>

namespace rush::labs {

/// out[r] = log(sum over c of exp(in[r, c])) of each row of in (rows, columns), for numbers of any size. Each element
/// is read once. There is at least one column.
void logsumexp(const float* in, float* out, int64_t rows, int64_t columns);

/// The widest head of attention.
inline constexpr int kMostWidth = 64;

struct AttentionSizes {
  int64_t heads, queries, keys;  // heads of all batches; at most 65535, as a grid's second size; at least one key
  int width;                     // of a head: 1 to kMostWidth
  bool causal;                   // query i attends to keys 0 to i, and not to all
};

/// out (heads, queries, width) = softmax(q k^T / sqrt(width)) v of each head, with softmax over keys, for q (heads,
/// queries, width), and k and v (heads, keys, width). No matrix of queries by keys is stored.
void attention(const float* q, const float* k, const float* v, float* out, const AttentionSizes& sizes);

}  // namespace rush::labs
