// Elements of a line as (key, position), and sorting them.
#pragma once
#include <algorithm>
#include <vector>

#include "backends/functors/sort_key.h"
#include "core/ops/along_dim.h"
#include "core/parallel.h"

namespace rush::cpu {

template <class Key>
struct Entry {
  Key key;
  int64_t index;
  friend bool operator<(const Entry& a, const Entry& b) { return a.key < b.key; }
};

// The order in which a stable sort leaves them.
template <class Key>
bool before(const Entry<Key>& a, const Entry<Key>& b) {
  return a.key != b.key ? a.key < b.key : a.index < b.index;
}

// The n elements of a line, `stride` apart; with `reversed` the largest has the smallest key.
template <class T, class Key = functors::SortKey<T>>
void load_entries(const T* x, int64_t stride, int64_t n, bool reversed, Entry<Key>* entries) {
  const Key flip = reversed ? static_cast<Key>(~Key(0)) : Key(0);
  for (int64_t i = 0; i < n; ++i) {
    entries[i] = {static_cast<Key>(functors::sort_key(x[i * stride]) ^ flip), i};
  }
}

// Sorts by key; equal keys stay in the order of their positions. `scratch` has room for n entries.
template <class Key>
void sort_entries(Entry<Key>* entries, int64_t n, Entry<Key>* scratch);
extern template void sort_entries(Entry<uint8_t>*, int64_t, Entry<uint8_t>*);
extern template void sort_entries(Entry<uint16_t>*, int64_t, Entry<uint16_t>*);
extern template void sort_entries(Entry<uint32_t>*, int64_t, Entry<uint32_t>*);
extern template void sort_entries(Entry<uint64_t>*, int64_t, Entry<uint64_t>*);

// Calls line(number, first element, entries, scratch) for every line along the middle dimension, on several threads.
// `entries` and `scratch` have room for a line.
template <class T, class Line>
void for_entry_lines(const AlongDim& shape, const Line& line) {
  const int64_t grain = std::max<int64_t>(1, kGrain / 16 / std::max<int64_t>(shape.size, 1));
  parallel_for(0, shape.outer * shape.inner, grain, [&](int64_t begin, int64_t end) {
    std::vector<Entry<functors::SortKey<T>>> entries(static_cast<size_t>(2 * shape.size));
    for (int64_t l = begin; l < end; ++l) {
      const int64_t start = l / shape.inner * shape.size * shape.inner + l % shape.inner;
      line(l, start, entries.data(), entries.data() + shape.size);
    }
  });
}

}  // namespace rush::cpu
