// Elements of a line as (key, position), and selecting among them. Which of several equal elements is selected follows
// from the algorithm, so all devices have the same one.
#pragma once
#include <algorithm>
#include <utility>

#include "backends/functors/sort_key.h"

namespace rush::functors {

template <class Key>
struct Entry {
  Key key;
  int64_t index;
  friend RUSH_HD bool operator<(const Entry& a, const Entry& b) { return a.key < b.key; }
};

// The order in which a stable sort leaves them.
template <class Key>
bool before(const Entry<Key>& a, const Entry<Key>& b) {
  return a.key != b.key ? a.key < b.key : a.index < b.index;
}

// The n elements of a line, `stride` apart; with `reversed` the largest has the smallest key.
template <class T, class Key = SortKey<T>>
RUSH_HD void load_entries(const T* x, int64_t stride, int64_t n, bool reversed, Entry<Key>* entries) {
  const Key flip = reversed ? static_cast<Key>(~Key(0)) : Key(0);
  for (int64_t i = 0; i < n; ++i) {
    entries[i] = {static_cast<Key>(sort_key(x[i * stride]) ^ flip), i};
  }
}

// Hoare's selection with the median of three as pivot, as PyTorch's kthvalue does it: which of several equal elements
// ends up at k follows from the swaps.
template <class Key>
RUSH_HD int64_t quick_select(Entry<Key>* a, int64_t n, int64_t k) {
  int64_t left = 0, right = n - 1;
  const auto order = [&](int64_t low, int64_t high) {
    if (a[low].key > a[high].key) std::swap(a[low], a[high]);
  };
  while (right > left) {
    if (right == left + 1) {
      order(left, right);
      break;
    }
    std::swap(a[left + (right - left) / 2], a[left + 1]);
    order(left + 1, right);
    order(left, right);
    order(left + 1, left);
    int64_t i = left + 1, j = right;
    const Key pivot = a[left].key;
    for (;;) {
      do ++i;
      while (pivot > a[i].key);
      do --j;
      while (a[j].key > pivot);
      if (j < i) break;
      std::swap(a[i], a[j]);
    }
    std::swap(a[left], a[j]);
    if (j <= k) left = i;
    if (j >= k) right = j - 1;
  }
  return a[k].index;
}

// The k > 0 smallest keys first; among equal keys, as in PyTorch's topk, whatever the selection leaves. Returns how
// many of the first entries are yet to be sorted.
template <class Key>
RUSH_HD int64_t select_first(Entry<Key>* entries, int64_t n, int64_t k) {
  if (k * 64 <= n) {
    std::partial_sort(entries, entries + k, entries + n);
    return 0;
  }
  std::nth_element(entries, entries + k - 1, entries + n);
  return k - 1;
}

// Sorts by key, as std::sort does where there are at most kFewEntries. (For more it recurs, which a GPU has no stack
// for.)
inline constexpr int64_t kFewEntries = 16;
template <class Key>
RUSH_HD void sort_few(Entry<Key>* entries, int64_t n) {
  for (int64_t i = 1; i < n; ++i) {
    const Entry<Key> entry = entries[i];
    int64_t to = i;
    for (; to > 0 && entry < entries[to - 1]; --to) entries[to] = entries[to - 1];
    entries[to] = entry;
  }
}

}  // namespace rush::functors
