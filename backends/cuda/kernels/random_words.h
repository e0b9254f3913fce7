// Kernels that draw random words, by Note [One random stream] in core/philox.h.
#pragma once
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

// out[i] = f(element i's words): one word as uint32_t, or both as uint64_t. A thread computes one block of four words,
// for 4 / k neighbouring elements, and writes them at once.
template <class T, int k, class F>
struct Draw {
  T* out;
  int64_t n;
  PhiloxState reserved;
  F f;
  bool aligned;

  __device__ void operator()(int64_t group) const {
    constexpr int kElements = 4 / k;
    const PhiloxBlock block = philox_block(reserved, static_cast<uint64_t>(group));
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
  __device__ void operator()(int64_t group) const {
    constexpr int kElements = 4 / kDrawWords<T>;
    const PhiloxBlock block = philox_block(this->reserved, static_cast<uint64_t>(group));
    Lanes<T, kElements> drawn;
    if constexpr (std::is_same_v<T, double>) {
      const NormalPair<double> pair = box_muller(block);
      drawn.lane[0] = this->f(pair.sine);
      drawn.lane[1] = this->f(pair.cosine);
    } else {
#pragma unroll
      for (int p = 0; p < 2; ++p) {
        const NormalPair<float> pair = box_muller(block[2 * p], block[2 * p + 1]);
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
  for_each_index(op, (n + kElements - 1) / kElements, Draw<T, k, F>{data, n, reserved, f, can_store<kElements>(data)});
}

// out[i] = f(a normal number)
template <class T, class F>
void draw_normal(const char* op, const Tensor& out, const PhiloxState& reserved, const F& f) {
  constexpr int kElements = 4 / kDrawWords<T>;
  const int64_t n = out.numel();
  T* data = out.data_ptr<T>();
  for_each_index(op, (n + kElements - 1) / kElements,
                 DrawNormal<T, F>{{data, n, reserved, f, can_store<kElements>(data)}});
}

}  // namespace rush::cuda
