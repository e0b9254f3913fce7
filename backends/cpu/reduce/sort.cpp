// sort and topk.
#include "core/ops/reduce/sort.h"

#include "backends/cpu/loops.h"
#include "backends/cpu/reduce/sort_entries.h"
#include "backends/cpu/register.h"

namespace rush::cpu {

namespace {

constexpr int64_t kFew = 200;  // entries that are sorted by comparison

// Key and position as one number where they fit, so that a comparison is a single one.
template <class Key>
void sort_short(Entry<Key>* entries, int64_t n) {
  if constexpr (sizeof(Key) == 8) {
    std::sort(entries, entries + n, before<Key>);
  } else {
    uint64_t words[kFew];
    for (int64_t i = 0; i < n; ++i) words[i] = uint64_t(entries[i].key) << 32 | static_cast<uint64_t>(entries[i].index);
    std::sort(words, words + n);
    for (int64_t i = 0; i < n; ++i) {
      entries[i] = {static_cast<Key>(words[i] >> 32), static_cast<int64_t>(words[i] & UINT32_MAX)};
    }
  }
}

}  // namespace

// Counts of 8-bit digits, from the least significant one (Knuth, The Art of Computer Programming 3, section 5.2.5). A
// digit that all keys share needs no pass.
template <class Key>
const Entry<Key>* sort_entries(Entry<Key>* entries, int64_t n, Entry<Key>* scratch) {
  constexpr int kDigits = sizeof(Key);
  if (n <= kFew) {
    sort_short(entries, n);
    return entries;
  }
  int64_t counts[kDigits][256] = {};
  for (int64_t i = 0; i < n; ++i) {
    for (int d = 0; d < kDigits; ++d) ++counts[d][entries[i].key >> (8 * d) & 255];
  }
  Entry<Key>*from = entries, *to = scratch;
  for (int d = 0; d < kDigits; ++d) {
    if (counts[d][from[0].key >> (8 * d) & 255] == n) continue;
    int64_t next = 0;
    for (int64_t& count : counts[d]) {
      const int64_t start = next;
      next += count;
      count = start;
    }
    for (int64_t i = 0; i < n; ++i) to[counts[d][from[i].key >> (8 * d) & 255]++] = from[i];
    std::swap(from, to);
  }
  return from;
}
template const Entry<uint8_t>* sort_entries(Entry<uint8_t>*, int64_t, Entry<uint8_t>*);
template const Entry<uint16_t>* sort_entries(Entry<uint16_t>*, int64_t, Entry<uint16_t>*);
template const Entry<uint32_t>* sort_entries(Entry<uint32_t>*, int64_t, Entry<uint32_t>*);
template const Entry<uint64_t>* sort_entries(Entry<uint64_t>*, int64_t, Entry<uint64_t>*);

namespace {

struct SortLoop {
  template <class T>
  static void run(const Tensor& values, const Tensor& indices, const Tensor& input, const AlongDim& shape,
                  bool descending) {
    if (shape.size == 0) return;  // lines of nothing
    const T* x = input.const_data_ptr<T>();
    T* value = values.data_ptr<T>();
    int64_t* index = indices.data_ptr<int64_t>();
    for_entry_lines<T>(shape, [&](int64_t, int64_t start, auto* entries, auto* scratch) {
      load_entries(x + start, shape.inner, shape.size, descending, entries);
      const auto* sorted = sort_entries(entries, shape.size, scratch);
      for (int64_t i = 0; i < shape.size; ++i) {
        value[start + i * shape.inner] = x[start + sorted[i].index * shape.inner];
        index[start + i * shape.inner] = sorted[i].index;
      }
    });
  }
};

// keys[i] = the key of x[i * stride]. Returns the smallest.
template <class T, class Key>
Key load_keys(const T* x, int64_t stride, int64_t n, bool reversed, Key* keys) {
  Key least = static_cast<Key>(~Key(0));
  if (stride == 1) {
    for (int64_t i = 0; i < n; ++i) keys[i] = functors::entry_key(x[i], reversed);
  } else {
    for (int64_t i = 0; i < n; ++i) keys[i] = functors::entry_key(x[i * stride], reversed);
  }
  for (int64_t i = 0; i < n; ++i) least = std::min(least, keys[i]);
  return least;
}

// As functors::partial_sort, which reads no entry a second time that is not among the first k: only those are kept.
// Most blocks of keys have none that is small enough.
template <class T, class Key>
void select_few(const T* x, int64_t stride, int64_t n, bool reversed, Entry<Key>* first, int64_t k) {
  constexpr int64_t kBlock = 64;
  Key keys[kBlock];
  load_entries(x, stride, k, reversed, first);
  functors::make_heap(first, k);
  for (int64_t i = k; i < n; i += kBlock) {
    const int64_t count = std::min(kBlock, n - i);
    if (load_keys(x + i * stride, stride, count, reversed, keys) >= first[0].key) continue;
    for (int64_t j = 0; j < count; ++j) {
      if (keys[j] < first[0].key) functors::adjust_heap(first, 0, k, Entry<Key>{keys[j], i + j});
    }
  }
  functors::sort_heap(first, k);
}

struct TopkLoop {
  template <class T>
  static void run(const Tensor& values, const Tensor& indices, const Tensor& input, const AlongDim& shape, int64_t k,
                  bool largest, bool sorted) {
    if (k == 0) return;
    const T* x = input.const_data_ptr<T>();
    T* value = values.data_ptr<T>();
    int64_t* index = indices.data_ptr<int64_t>();
    for_entry_lines<T>(shape, [&](int64_t line, int64_t start, auto* entries, auto*) {
      if (functors::takes_few(k, shape.size)) {
        select_few(x + start, shape.inner, shape.size, largest, entries, k);
      } else {
        load_entries(x + start, shape.inner, shape.size, largest, entries);
        const int64_t unsorted = functors::select_first(entries, shape.size, k);
        if (sorted) std::sort(entries, entries + unsorted);
      }
      const int64_t out = line / shape.inner * k * shape.inner + line % shape.inner;
      for (int64_t i = 0; i < k; ++i) {
        value[out + i * shape.inner] = x[start + entries[i].index * shape.inner];
        index[out + i * shape.inner] = entries[i].index;
      }
    });
  }
};

}  // namespace

void register_sort() {
  set_by_dtype<kernels::sort, SortLoop, RealAndBoolTypes, 2>(kCPU);
  set_by_dtype<kernels::topk, TopkLoop, RealAndBoolTypes, 2>(kCPU);
}

}  // namespace rush::cpu
