#include "backends/cuda/kernels/index/sorted_scatter.h"

#include <bit>

#include "backends/cuda/kernels/launch.h"
#include "backends/cuda/kernels/reduce/block_sort.h"
#include "backends/cuda/kernels/reduce/sort_pairs.h"
#include "backends/cuda/memory/scratch.h"

namespace rush::cuda {

namespace {

// What is no offset gets the largest key.
template <class Key>
struct OffsetKeys {
  const int64_t* offsets;
  Key* keys;
  int64_t* numbers;
  Key none;
  __device__ void operator()(int64_t i) const {
    keys[i] = offsets[i] == kNoOffset ? none : static_cast<Key>(offsets[i]);
    numbers[i] = i;
  }
};

template <class Key>
void sort_as(const char* op, const int64_t* offsets, int64_t n, int bits, int64_t* order) {
  const Scratch keys(2 * static_cast<size_t>(n) * sizeof(Key)), numbers(static_cast<size_t>(n) * sizeof(int64_t));
  const auto none = static_cast<Key>((uint64_t{1} << bits) - 1);
  for_each_index(op, n, OffsetKeys<Key>{offsets, keys.as<Key>(), numbers.as<int64_t>(), none});
  sort_pairs(keys.as<const Key>(), keys.as<Key>() + n, numbers.as<const int64_t>(), order, n, bits);
}

}  // namespace

void sort_offsets(const char* op, const int64_t* offsets, int64_t n, int64_t bound, int64_t* order) {
  if (n == 0) return;
  const int bits = std::bit_width(static_cast<uint64_t>(bound));
  if (sort_offsets_in_block(op, offsets, n, bits, order)) return;
  bits <= 32 ? sort_as<uint32_t>(op, offsets, n, bits, order) : sort_as<uint64_t>(op, offsets, n, bits, order);
}

void scatter_combined(const char* op, ScalarType dtype, const ScatterPlan& plan, int64_t bound, IndexWrite write,
                      const int64_t* order) {
  if (plan.count() == 0 || scatter_atomically(op, dtype, plan, write)) return;
  scatter_sorted(op, dtype, plan, std::max<int64_t>(bound, 1), write, order);
}

}  // namespace rush::cuda
