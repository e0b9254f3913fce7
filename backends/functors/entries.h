// Elements of a line as (key, position), and selecting among them. Which of several equal elements is selected follows
// from the algorithm, so all devices have the same one.
#pragma once
#include <cstdint>

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

// With `reversed` the largest element has the smallest key.
template <class T, class Key = SortKey<T>>
RUSH_HD Key entry_key(T x, bool reversed) {
  return static_cast<Key>(sort_key(x) ^ (reversed ? static_cast<Key>(~Key(0)) : Key(0)));
}

// The n elements of a line, `stride` apart.
template <class T, class Key = SortKey<T>>
RUSH_HD void load_entries(const T* x, int64_t stride, int64_t n, bool reversed, Entry<Key>* entries) {
  for (int64_t i = 0; i < n; ++i) entries[i] = {entry_key(x[i * stride], reversed), i};
}

template <class Key>
RUSH_HD void swap_entries(Entry<Key>& a, Entry<Key>& b) {
  const Entry<Key> kept = a;
  a = b;
  b = kept;
}

// Hoare's selection with the median of three as pivot, as PyTorch's kthvalue does it: which of several equal elements
// ends up at k follows from the swaps.
template <class Key>
RUSH_HD int64_t quick_select(Entry<Key>* a, int64_t n, int64_t k) {
  int64_t left = 0, right = n - 1;
  const auto order = [&](int64_t low, int64_t high) {
    if (a[low].key > a[high].key) swap_entries(a[low], a[high]);
  };
  while (right > left) {
    if (right == left + 1) {
      order(left, right);
      break;
    }
    swap_entries(a[left + (right - left) / 2], a[left + 1]);
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
      swap_entries(a[i], a[j]);
    }
    swap_entries(a[left], a[j]);
    if (j <= k) left = i;
    if (j >= k) right = j - 1;
  }
  return a[k].index;
}

// Note [Selection written out]
// Which of several equal elements topk takes is what std::partial_sort and std::nth_element of GNU's library leave
// first, because PyTorch uses these. Here are their algorithms, comparison by comparison, for all devices: nvcc
// compiles the library's own for a GPU too, but they move elements with memmove, which did not give the same there.

// Lets the hole at `hole` of a heap of n sink to a leaf, and `entry` rise from there.
template <class Key>
RUSH_HD void adjust_heap(Entry<Key>* a, int64_t hole, int64_t n, Entry<Key> entry) {
  const int64_t top = hole;
  int64_t child = hole;
  while (child < (n - 1) / 2) {
    child = 2 * (child + 1);
    if (a[child] < a[child - 1]) --child;
    a[hole] = a[child];
    hole = child;
  }
  if (n % 2 == 0 && child == (n - 2) / 2) {
    child = 2 * (child + 1);
    a[hole] = a[child - 1];
    hole = child - 1;
  }
  for (int64_t parent = (hole - 1) / 2; hole > top && a[parent] < entry; parent = (hole - 1) / 2) {
    a[hole] = a[parent];
    hole = parent;
  }
  a[hole] = entry;
}

// Makes k entries a heap, the largest first.
template <class Key>
RUSH_HD void make_heap(Entry<Key>* a, int64_t k) {
  for (int64_t parent = (k - 2) / 2; k > 1 && parent >= 0; --parent) adjust_heap(a, parent, k, a[parent]);
}

// Makes the first k of n entries a heap of the k smallest.
template <class Key>
RUSH_HD void heap_select(Entry<Key>* a, int64_t k, int64_t n) {
  make_heap(a, k);
  for (int64_t i = k; i < n; ++i) {
    if (!(a[i] < a[0])) continue;
    const Entry<Key> entry = a[i];
    a[i] = a[0];
    adjust_heap(a, 0, k, entry);
  }
}

template <class Key>
RUSH_HD void sort_heap(Entry<Key>* a, int64_t k) {
  for (int64_t last = k - 1; last > 0; --last) {
    const Entry<Key> entry = a[last];
    a[last] = a[0];
    adjust_heap(a, 0, last, entry);
  }
}

template <class Key>
RUSH_HD void partial_sort(Entry<Key>* a, int64_t k, int64_t n) {
  heap_select(a, k, n);
  sort_heap(a, k);
}

// Sorts by insertion, as std::sort does where there are at most kFewEntries. (For more it recurs, which a GPU has no
// stack for.)
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

// Puts the median of a[1], a[n / 2] and a[n - 1] first and parts the others at it. Returns where the upper part begins.
template <class Key>
RUSH_HD int64_t partition_at_median(Entry<Key>* a, int64_t n) {
  Entry<Key>&x = a[1], &y = a[n / 2], &z = a[n - 1];
  Entry<Key>& median = x < y ? (y < z ? y : x < z ? z : x) : (x < z ? x : y < z ? z : y);
  swap_entries(a[0], median);
  for (int64_t low = 1, high = n;; ++low) {
    while (a[low] < a[0]) ++low;
    --high;
    while (a[0] < a[high]) --high;
    if (!(low < high)) return low;
    swap_entries(a[low], a[high]);
  }
}

// Puts the entry that comes k-th (from 0) there, and smaller ones before it.
template <class Key>
RUSH_HD void nth_element(Entry<Key>* a, int64_t k, int64_t n) {
  if (n == 0 || k == n) return;
  int64_t rounds = 0;
  for (int64_t rest = n; rest >>= 1;) rounds += 2;
  for (; n > 3; --rounds) {
    if (rounds == 0) {
      heap_select(a, k + 1, n);
      return swap_entries(a[0], a[k]);
    }
    const int64_t cut = partition_at_median(a, n);
    if (cut <= k) {
      a += cut;
      k -= cut;
      n -= cut;
    } else {
      n = cut;
    }
  }
  sort_few(a, n);
}

// Whether PyTorch's topk takes k of n elements by partial_sort.
RUSH_HD inline bool takes_few(int64_t k, int64_t n) { return k * 64 <= n; }

// The k > 0 smallest keys first; among equal keys, as in PyTorch's topk, whatever the selection leaves. Returns how
// many of the first entries are yet to be sorted.
template <class Key>
RUSH_HD int64_t select_first(Entry<Key>* entries, int64_t n, int64_t k) {
  if (takes_few(k, n)) {
    partial_sort(entries, k, n);
    return 0;
  }
  nth_element(entries, k - 1, n);
  return k - 1;
}

}  // namespace rush::functors
