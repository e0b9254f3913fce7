// Kernels that draw random words, by Note [One random stream] in core/philox.h.
#pragma once
#include "backends/cuda/kernels/box_muller.h"
#include "backends/cuda/kernels/launch.h"
#include "core/philox.h"

namespace rush::cuda {

// Double precision takes two words an element, everything narrower one.
template <class T>
using draw_math_t = std::conditional_t<std::is_same_v<T, double>, double, float>;
template <class T>
inline constexpr int kDrawWords = std::is_same_v<T, double> ? 2 : 1;

// Whether `data` can be written kElements at a time.
template <int kElements, class T>
bool can_store(const T* data) {
  return reinterpret_cast<uintptr_t>(data) % (kElements * sizeof(T)) == 0;
}

// philox4x32_10 of core/philox.h. In products of 64 bits nvcc adds, in every round, zeros to the upper halves.
__device__ inline PhiloxBlock philox_rounds(const PhiloxBlock& counter, uint64_t seed) {
  constexpr uint32_t kMultiplier0 = 0xD2511F53, kMultiplier1 = 0xCD9E8D57;
  uint32_t c0 = counter[0], c1 = counter[1], c2 = counter[2], c3 = counter[3];
  auto key0 = static_cast<uint32_t>(seed), key1 = static_cast<uint32_t>(seed >> 32);
#pragma unroll
  for (int round = 0; round < 10; ++round) {
    const uint32_t next0 = __umulhi(kMultiplier1, c2) ^ c1 ^ key0, next2 = __umulhi(kMultiplier0, c0) ^ c3 ^ key1;
    c1 = kMultiplier1 * c2;
    c3 = kMultiplier0 * c0;
    c0 = next0;
    c2 = next2;
    key0 += 0x9E3779B9;
    key1 += 0xBB67AE85;
  }
  return {{c0, c1, c2, c3}};
}

// The words of a group, of a state that is resolved: philox_block of core/philox.h.
__device__ inline PhiloxBlock group_words(const PhiloxState& state, uint64_t group) {
  const uint64_t index = state.offset / 4;
  return philox_rounds({{static_cast<uint32_t>(index), static_cast<uint32_t>(index >> 32), static_cast<uint32_t>(group),
                         static_cast<uint32_t>(group >> 32)}},
                       state.seed);
}

// Calls body(group, its four words) for every group of a reservation. A thread computes the words of two groups
// together, and the keys of Philox's rounds once for both.
template <class Body>
__global__ void __launch_bounds__(kThreads)
    words_kernel(const __grid_constant__ Body body, const __grid_constant__ PhiloxState reserved, int64_t groups) {
  constexpr int kGroups = 2;
  const PhiloxState state = reserved.resolved();
  const int64_t first = static_cast<int64_t>(blockIdx.x) * (kThreads * kGroups) + threadIdx.x;
  PhiloxBlock block[kGroups];
#pragma unroll
  for (int g = 0; g < kGroups; ++g) block[g] = group_words(state, static_cast<uint64_t>(first + g * kThreads));
#pragma unroll
  for (int g = 0; g < kGroups; ++g) {
    if (first + g * kThreads < groups) body(first + g * kThreads, block[g]);
  }
}

template <class Body>
void for_each_group(const char* op, int64_t groups, const PhiloxState& reserved, const Body& body) {
  if (groups == 0) return;
  constexpr int64_t kWork = 2 * kThreads;
  words_kernel<Body>
      <<<static_cast<unsigned>((groups + kWork - 1) / kWork), kThreads, 0, current_stream()>>>(body, reserved, groups);
  RUSH_CUDA_LAUNCHED(op);
}

// out[i] = f(element i's words): one word as uint32_t, or both as uint64_t. A group is 4 / k neighbouring elements,
// which are written at once.
template <class T, int k, class F>
struct Draw {
  T* out;
  int64_t n;
  F f;
  bool aligned;

  __device__ void operator()(int64_t group, const PhiloxBlock& block) const {
    constexpr int kElements = 4 / k;
    Lanes<T, kElements> drawn;
#pragma unroll
    for (int e = 0; e < kElements; ++e) {
      if constexpr (k == 1) {
        drawn.lane[e] = static_cast<T>(f(block[e]));
      } else {
        drawn.lane[e] = static_cast<T>(f(join_words(block[2 * e], block[2 * e + 1])));
      }
    }
    store(group * kElements, drawn);
  }

 protected:
  template <int kElements>
  __device__ void store(int64_t first, const Lanes<T, kElements>& drawn) const {
    if (aligned && first + kElements <= n) {
      *reinterpret_cast<Lanes<T, kElements>*>(out + first) = drawn;
      return;
    }
#pragma unroll
    for (int e = 0; e < kElements; ++e) {
      if (first + e < n) out[first + e] = drawn.lane[e];
    }
  }
};

// The same from normal numbers with deviation 1, which come in pairs: two of a block in float, one in double.
template <class T, class F>
struct DrawNormal : Draw<T, kDrawWords<T>, F> {
  __device__ void operator()(int64_t group, const PhiloxBlock& block) const {
    constexpr int kElements = 4 / kDrawWords<T>;
    Lanes<T, kElements> drawn;
    if constexpr (std::is_same_v<T, double>) {
      const NormalPair<double> pair = box_muller(block);
      drawn.lane[0] = this->f(pair.sine);
      drawn.lane[1] = this->f(pair.cosine);
    } else {
#pragma unroll
      for (int p = 0; p < 2; ++p) {
        const NormalPair<float> pair = box_muller_of(block[2 * p], block[2 * p + 1]);
        drawn.lane[2 * p] = static_cast<T>(this->f(pair.sine));
        drawn.lane[2 * p + 1] = static_cast<T>(this->f(pair.cosine));
      }
    }
    this->store(group * kElements, drawn);
  }
};

// out[i] = f(element i's k words)
template <class T, int k, class F>
void draw(const char* op, const Tensor& out, const PhiloxState& reserved, const F& f) {
  constexpr int kElements = 4 / k;
  const int64_t n = out.numel();
  T* data = out.data_ptr<T>();
  for_each_group(op, (n + kElements - 1) / kElements, reserved, Draw<T, k, F>{data, n, f, can_store<kElements>(data)});
}

// out[i] = f(a normal number)
template <class T, class F>
void draw_normal(const char* op, const Tensor& out, const PhiloxState& reserved, const F& f) {
  constexpr int kElements = 4 / kDrawWords<T>;
  const int64_t n = out.numel();
  T* data = out.data_ptr<T>();
  for_each_group(op, (n + kElements - 1) / kElements, reserved,
                 DrawNormal<T, F>{{data, n, f, can_store<kElements>(data)}});
}

}  // namespace rush::cuda
