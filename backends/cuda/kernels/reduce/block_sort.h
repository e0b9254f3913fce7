// Sorting of lines that are short enough for a block of threads each.
#pragma once
#include "backends/cuda/kernels/reduce/line_order.h"

namespace rush::cuda {

// Where sorted elements are written: as a LineOrder, or those at some ranks with their values.
struct SortedPlaces {
  int64_t* order;  // or null, and
  char* values;
  int64_t* indices;
  const char* x;
  int64_t element_size;
  Ranks ranks;
  LinePlaces places;

#ifdef __CUDACC__
  // The element at `index` of a line has this rank among all of the line, whose last `nans` ones are NaN.
  __device__ void put(int64_t line, int64_t rank, int64_t index, int64_t nans) const {
    if (order) {
      order[line * places.size + rank] = line * places.size + index;
      return;
    }
    const int64_t at = rank - ranks.begin(places.size, nans);
    if (at < 0 || at >= ranks.count) return;
    const int64_t to = places.at(line, at, ranks.count), from = places.start(line) + index * places.inner;
    indices[to] = places.first(line) + index;
    switch (element_size) {
      case 1: move<uint8_t>(to, from); break;
      case 2: move<uint16_t>(to, from); break;
      case 4: move<uint32_t>(to, from); break;
      default: move<uint64_t>(to, from);
    }
  }
  template <class T>
  __device__ void move(int64_t to, int64_t from) const {
    reinterpret_cast<T*>(values)[to] = reinterpret_cast<const T*>(x)[from];
  }
#endif
};

inline constexpr int64_t kLongestInBlock = 8192;  // with keys of 8 bytes half

// Both return false, and do nothing, where lines, or the chunks that `out` cuts them into, are too long.
bool sort_in_blocks(const char* op, const Tensor& input, const AlongDim& shape, bool descending,
                    const SortedPlaces& out);
// n offsets below 2^bits - 1, or kNoOffset: order (n) = what sorts them.
bool sort_offsets_in_block(const char* op, const int64_t* offsets, int64_t n, int bits, int64_t* order);

}  // namespace rush::cuda
