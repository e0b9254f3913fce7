// Sorting the entries of a line, and going over all lines.
#pragma once
#include <algorithm>

#include "backends/cpu/scratch.h"
#include "backends/functors/entries.h"
#include "core/ops/reduce/along_dim.h"
#include "core/threads/parallel.h"

namespace rush::cpu {

using functors::before;
using functors::Entry;
using functors::load_entries;

// Sorts by key; equal keys stay in the order of their positions. `scratch` has room for n entries. Returns where the
// sorted ones are: in `entries` or in `scratch`.
template <class Key>
const Entry<Key>* sort_entries(Entry<Key>* entries, int64_t n, Entry<Key>* scratch);
extern template const Entry<uint8_t>* sort_entries(Entry<uint8_t>*, int64_t, Entry<uint8_t>*);
extern template const Entry<uint16_t>* sort_entries(Entry<uint16_t>*, int64_t, Entry<uint16_t>*);
extern template const Entry<uint32_t>* sort_entries(Entry<uint32_t>*, int64_t, Entry<uint32_t>*);
extern template const Entry<uint64_t>* sort_entries(Entry<uint64_t>*, int64_t, Entry<uint64_t>*);

// Calls line(number, first element, entries, scratch) for every line along the middle dimension, on several threads.
// `entries` and `scratch` have room for a line.
template <class T, class Line>
void for_entry_lines(const AlongDim& shape, const Line& line) {
  const int64_t grain = std::max<int64_t>(1, kGrain / 16 / std::max<int64_t>(shape.size, 1));
  parallel_for(0, shape.outer * shape.inner, grain, [&](int64_t begin, int64_t end) {
    const Scratch<Entry<functors::SortKey<T>>> entries(2 * shape.size);
    for (int64_t l = begin; l < end; ++l) {
      const int64_t start = l / shape.inner * shape.size * shape.inner + l % shape.inner;
      line(l, start, entries.data(), entries.data() + shape.size);
    }
  });
}

}  // namespace rush::cpu
