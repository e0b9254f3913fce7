// sort and topk.
#include "core/ops/reduce/sort.h"

#include "backends/cpu/loops.h"
#include "backends/cpu/reduce/sort_entries.h"
#include "backends/cpu/register.h"

namespace rush::cpu {

// Counts of 8-bit digits, from the least significant one (Knuth, The Art of Computer Programming 3, section 5.2.5). A
// digit that all keys share needs no pass. Short lines are sorted by comparison, position after key.
template <class Key>
void sort_entries(Entry<Key>* entries, int64_t n, Entry<Key>* scratch) {
  constexpr int kDigits = sizeof(Key);
  constexpr int64_t kFew = 200;
  if (n <= kFew) return std::sort(entries, entries + n, before<Key>);
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
  if (from != entries) std::copy_n(from, n, entries);
}
template void sort_entries(Entry<uint8_t>*, int64_t, Entry<uint8_t>*);
template void sort_entries(Entry<uint16_t>*, int64_t, Entry<uint16_t>*);
template void sort_entries(Entry<uint32_t>*, int64_t, Entry<uint32_t>*);
template void sort_entries(Entry<uint64_t>*, int64_t, Entry<uint64_t>*);

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
      sort_entries(entries, shape.size, scratch);
      for (int64_t i = 0; i < shape.size; ++i) {
        value[start + i * shape.inner] = x[start + entries[i].index * shape.inner];
        index[start + i * shape.inner] = entries[i].index;
      }
    });
  }
};

struct TopkLoop {
  template <class T>
  static void run(const Tensor& values, const Tensor& indices, const Tensor& input, const AlongDim& shape, int64_t k,
                  bool largest, bool sorted) {
    if (k == 0) return;
    const T* x = input.const_data_ptr<T>();
    T* value = values.data_ptr<T>();
    int64_t* index = indices.data_ptr<int64_t>();
    for_entry_lines<T>(shape, [&](int64_t line, int64_t start, auto* entries, auto*) {
      load_entries(x + start, shape.inner, shape.size, largest, entries);
      const int64_t unsorted = functors::select_first(entries, shape.size, k);
      if (sorted) std::sort(entries, entries + unsorted);
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
