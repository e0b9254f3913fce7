#include <bit>

#include "backends/cuda/kernels/index/sorted_scatter.h"
#include "backends/cuda/kernels/launch.h"
#include "backends/functors/index.h"
#include "backends/functors/sort_key.h"

namespace rush::cuda {

namespace {

// *at = Write()(*at, value), where that depends on the values that came alone. An element narrower than a word is
// replaced in its word; most values change nothing, and are told by reading.
template <class T, class Write>
struct Atomic {
  using Word = std::conditional_t<sizeof(T) == 8, unsigned long long, unsigned>;
  using Bits = functors::SortKey<T>;

  __device__ static void update(T* at, T value) {
    const auto address = reinterpret_cast<uintptr_t>(at);
    auto* word = reinterpret_cast<Word*>(address - address % sizeof(Word));
    const int shift = 8 * static_cast<int>(address % sizeof(Word));
    const Word mask = static_cast<Word>(static_cast<Bits>(~Bits(0))) << shift;
    Word seen = *static_cast<volatile Word*>(word);
    for (;;) {
      const auto old = static_cast<Bits>(seen >> shift);
      const auto next = std::bit_cast<Bits>(Write()(std::bit_cast<T>(old), value));
      if (next == old) return;
      const Word before = atomicCAS(word, seen, (seen & ~mask) | static_cast<Word>(next) << shift);
      if (before == seen) return;
      seen = before;
    }
  }
};

template <class T>
struct Atomic<T, functors::WriteAdd> {
  using Word = std::conditional_t<sizeof(T) == 8, unsigned long long, unsigned>;
  __device__ static void update(T* at, T value) {
    atomicAdd(reinterpret_cast<Word*>(at), static_cast<Word>(value));  // two's complement: as of signed numbers
  }
};

template <class T, class Write>
struct AtomicScatter {
  ScatterPlan plan;
  __device__ void operator()(int64_t task) const {
    const int64_t i = task % plan.inner.count, row = task / plan.inner.count, offset = plan.offset(row % plan.n);
    if (offset == kNoOffset) return;
    T* at = static_cast<T*>(plan.to) + plan.outer.offset(row / plan.n) + offset + plan.inner.offset(i);
    Atomic<T, Write>::update(at, static_cast<const T*>(plan.values)[plan.one_value ? 0 : task]);
  }
};

template <class Write>
struct AtomicLoop {
  template <class T>
  static void run(const char* op, const ScatterPlan& plan) {
    for_each_index(op, plan.count(), AtomicScatter<T, Write>{plan});
  }
};

}  // namespace

bool scatter_atomically(const char* op, ScalarType dtype, const ScatterPlan& plan, IndexWrite write) {
  if (write == IndexWrite::Minimum) {
    pick<AtomicLoop<functors::WriteMinimum>>(RealAndBoolTypes(), dtype, op)(op, plan);
  } else if (write == IndexWrite::Maximum) {
    pick<AtomicLoop<functors::WriteMaximum>>(RealAndBoolTypes(), dtype, op)(op, plan);
  } else if (write == IndexWrite::Add && (dtype == kInt32 || dtype == kInt64)) {
    pick<AtomicLoop<functors::WriteAdd>>(TypeList<int32_t, int64_t>(), dtype, op)(op, plan);
  } else {
    return false;
  }
  return true;
}

}  // namespace rush::cuda
