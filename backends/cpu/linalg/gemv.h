// Matrix times vector on one thread. Memory bounds it, so nothing is packed.
#pragma once
#include <algorithm>

#include "backends/cpu/linalg/gemm.h"
#include "backends/cpu/scratch.h"

namespace rush::cpu {

namespace detail {

inline constexpr int64_t kGemvChunk = 256;  // numbers that are converted, or lanes that are summed, at a time

template <class Math>
Math dot(const Math* a, const Math* b, int64_t n) {
  Math total(0);
  int64_t i = 0;
  if constexpr (!is_complex_v<Math>) {
    // Four vectors of partial sums hide the latency of the additions.
    typedef Math Vector __attribute__((vector_size(kVectorBytes), aligned(alignof(Math)), may_alias));
    constexpr int64_t width = kVectorBytes / sizeof(Math);
    Vector sums[4] = {};
    for (; i + 4 * width <= n; i += 4 * width) {
#pragma GCC unroll 4
      for (int v = 0; v < 4; ++v) {
        sums[v] +=
            *reinterpret_cast<const Vector*>(a + i + v * width) * *reinterpret_cast<const Vector*>(b + i + v * width);
      }
    }
    const Vector sum = (sums[0] + sums[1]) + (sums[2] + sums[3]);
    for (int64_t l = 0; l < width; ++l) total += sum[l];
  } else {
    constexpr int lanes = 8;
    Math sums[lanes] = {};
    for (; i + lanes <= n; i += lanes) {
      for (int l = 0; l < lanes; ++l) sums[l] += a[i + l] * b[i + l];
    }
    for (const Math& sum : sums) total += sum;
  }
  for (; i < n; ++i) total += a[i] * b[i];
  return total;
}

// Whether T can be read as Math: C++ allows access to a signed integer through the unsigned type of the same size.
template <class T, class Math>
inline constexpr bool kReadAs = std::is_same_v<T, Math> ||
                                (std::is_integral_v<T> && std::is_unsigned_v<Math> && sizeof(T) == sizeof(Math));

template <class T, class Math>
Math lane_dot(const T* lane, int64_t stride, const Math* x, int64_t depth) {
  if constexpr (kReadAs<T, Math>) {
    if (stride == 1) return dot(reinterpret_cast<const Math*>(lane), x, depth);
  }
  Math total(0), chunk[kGemvChunk];
  for (int64_t d = 0; d < depth; d += kGemvChunk) {
    const int64_t n = std::min(kGemvChunk, depth - d);
    if (stride == 1) {
      for (int64_t i = 0; i < n; ++i) chunk[i] = static_cast<Math>(lane[d + i]);
    } else {
      for (int64_t i = 0; i < n; ++i) chunk[i] = static_cast<Math>(lane[(d + i) * stride]);
    }
    total += dot(chunk, x + d, n);
  }
  return total;
}

}  // namespace detail

// y = alpha A x + beta y, for a matrix A (lanes, depth) of which lane l at depth d is a[l * lane_stride + d *
// depth_stride]. With beta 0, y need not be initialised.
template <class T>
void gemv(int64_t lanes, int64_t depth, const T* a, int64_t lane_stride, int64_t depth_stride, const T* x,
          int64_t x_stride, gemm_math_t<T> alpha, gemm_math_t<T> beta, T* y, int64_t y_stride) {
  using Math = gemm_math_t<T>;
  const bool usable = detail::kReadAs<T, Math> && x_stride == 1;
  const Scratch<Math> copy_of_x(usable ? 0 : depth);
  const Math* contiguous_x = copy_of_x.data();
  if constexpr (detail::kReadAs<T, Math>) {
    if (usable) contiguous_x = reinterpret_cast<const Math*>(x);
  }
  for (int64_t d = 0; !usable && d < depth; ++d) copy_of_x[d] = static_cast<Math>(x[d * x_stride]);
  const auto store = [&](int64_t lane, Math sum) {
    T& out = y[lane * y_stride];
    out = static_cast<T>(beta == Math(0) ? alpha * sum : beta * static_cast<Math>(out) + alpha * sum);
  };
  if (lane_stride != 1 || lanes == 1) {
    for (int64_t l = 0; l < lanes; ++l) {
      store(l, detail::lane_dot(a + l * lane_stride, depth_stride, contiguous_x, depth));
    }
    return;
  }
  // Neighbouring lanes have stride 1, so many are summed at once.
  for (int64_t l = 0; l < lanes; l += detail::kGemvChunk) {
    const int64_t n = std::min(detail::kGemvChunk, lanes - l);
    Math sums[detail::kGemvChunk] = {};
    for (int64_t d = 0; d < depth; ++d) {
      const T* from = a + l + d * depth_stride;
      const Math factor = contiguous_x[d];
      for (int64_t i = 0; i < n; ++i) sums[i] += factor * static_cast<Math>(from[i]);
    }
    for (int64_t i = 0; i < n; ++i) store(l + i, sums[i]);
  }
}

}  // namespace rush::cpu
