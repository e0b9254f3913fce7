// Kernels that draw random words, by Note [One random stream] in core/philox.h.
#pragma once
#include "backends/cuda/kernels/launch.h"
#include "backends/cuda/kernels/pack.h"
#include "backends/cuda/kernels/random/box_muller.h"
#include "backends/functors/random.h"
#include "core/philox.h"

namespace rush::cuda {

// Whether `data` can be written kElements at a time.
template <int kElements, class T>
bool can_store(const T* data) {
  return reinterpret_cast<uintptr_t>(data) % (kElements * sizeof(T)) == 0;
}

// The elements that a group of four words makes, by words one or two at a time. `k` words make one: f of a uint32_t, or
// of a uint64_t.
template <class T, int k, class F>
struct Draw {
  static constexpr int kElements = 4 / k, kGroups = 4;
  F f;
  __device__ Lanes<T, kElements> operator()(const PhiloxBlock& words) const {
    Lanes<T, kElements> drawn;
#pragma unroll
    for (int e = 0; e < kElements; ++e) {
      if constexpr (k == 1) {
        drawn.lane[e] = static_cast<T>(f(words[e]));
      } else {
        drawn.lane[e] = static_cast<T>(f(join_words(words[2 * e], words[2 * e + 1])));
      }
    }
    return drawn;
  }
};

// The same from standard normal numbers, which come in pairs.
template <class T, class F>
struct DrawNormal {
  static constexpr int kWordsOfPair = functors::kWordsOfNormalPair<T>, kPairs = 4 / kWordsOfPair;
  static constexpr int kElements = 2 * kPairs, kGroups = kElements == 4 ? 8 : 4;
  F f;
  __device__ static auto pair(const PhiloxBlock& words, int p) {
    if constexpr (kWordsOfPair == 1) {
      return coarse_box_muller_of(words[p], functors::spread(words[p]));
    } else if constexpr (kWordsOfPair == 2) {
      return box_muller_of(words[2 * p], words[2 * p + 1]);
    } else {
      return box_muller(words);
    }
  }
  __device__ Lanes<T, kElements> operator()(const PhiloxBlock& words) const {
    Lanes<T, kElements> drawn;
#pragma unroll
    for (int p = 0; p < kPairs; ++p) {
      const auto normal = pair(words, p);
      const Lanes<T, 2> two = rounded_pair<T>(f(normal.sine), f(normal.cosine));
      drawn.lane[2 * p] = two.lane[0];
      drawn.lane[2 * p + 1] = two.lane[1];
    }
    return drawn;
  }
};

// out[0, n) = the elements of groups 0, 1, ...; `aligned`: whether those of a group can be written at once. A thread
// draws several groups, so that it computes the keys of Philox's rounds once for all. The numbers of a thread block's
// groups differ in their lowest bits only, so that their upper halves are the same for the block.
template <class T, class Drawer>
__global__ void __launch_bounds__(kThreads)
    draw_kernel(T* out, int64_t n, Drawer draw, const __grid_constant__ PhiloxState reserved, bool aligned) {
  constexpr int kElements = Drawer::kElements, kGroups = Drawer::kGroups, kPerBlock = kThreads * kGroups;
  static_assert((kPerBlock & (kPerBlock - 1)) == 0);
  const PhiloxState state = reserved.resolved();
  const int64_t start = static_cast<int64_t>(blockIdx.x) * kPerBlock;
  const bool whole = aligned && (start + kPerBlock) * kElements <= n;  // for all of the block
  PhiloxBlock words[kGroups];
#pragma unroll
  for (int g = 0; g < kGroups; ++g) words[g] = philox_block(state, start | (threadIdx.x + g * kThreads));
  const int64_t first = (start + threadIdx.x) * kElements;
#pragma unroll
  for (int g = 0; g < kGroups; ++g) {
    const Lanes<T, kElements> drawn = draw(words[g]);
    const int64_t at = first + g * kThreads * kElements;
    if (whole) {
      *reinterpret_cast<Lanes<T, kElements>*>(out + at) = drawn;
      continue;
    }
#pragma unroll
    for (int e = 0; e < kElements; ++e) {
      if (at + e < n) out[at + e] = drawn.lane[e];
    }
  }
}

template <class T, class Drawer>
void launch_draw(const char* op, const Tensor& out, const PhiloxState& reserved, const Drawer& drawer) {
  constexpr int64_t kWork = int64_t{kThreads} * Drawer::kGroups * Drawer::kElements;
  const int64_t n = out.numel();
  if (n == 0) return;
  T* data = out.data_ptr<T>();
  launch_kernel(op, draw_kernel<T, Drawer>, {static_cast<unsigned>((n + kWork - 1) / kWork), kThreads}, data, n, drawer,
                reserved, can_store<Drawer::kElements>(data));
}

// What the loops of backends/functors/random_kernels.h draw with.
struct Drawing {
  template <class T, int k, class F>
  static void words(const char* op, const Tensor& out, const PhiloxState& reserved, const F& f) {
    launch_draw<T>(op, out, reserved, Draw<T, k, F>{f});
  }
  template <class T, class F>
  static void normal(const char* op, const Tensor& out, const PhiloxState& reserved, const F& f) {
    launch_draw<T>(op, out, reserved, DrawNormal<T, F>{f});
  }
};

}  // namespace rush::cuda
