// Transposing a square of numbers in vector registers.
#pragma once
#include <cstdint>
#include <type_traits>
#include <utility>

#include "core/macros.h"

namespace rush::cpu {

// Numbers of one type in a vector of `bytes`, which may lie anywhere in memory.
template <class Real, int64_t bytes>
struct VectorOf {
  typedef Real type __attribute__((vector_size(bytes), aligned(alignof(Real)), may_alias));
};

namespace detail {

// Exchanges the upper right and lower left quarters of every square of 2 * `half` rows and columns.
template <int half, class Vector, size_t... lane>
RUSH_ALWAYS_INLINE void exchange_quarters(Vector& upper, Vector& lower, std::index_sequence<lane...>) {
  constexpr int width = sizeof...(lane);
  const Vector old = upper;
#ifdef __clang__
  upper = __builtin_shufflevector(old, lower, (lane & half ? int(width + lane - half) : int(lane))...);
  lower = __builtin_shufflevector(old, lower, (lane & half ? int(width + lane) : int(lane + half))...);
#else
  using Element = std::remove_reference_t<decltype(upper[0])>;
  using Index = std::conditional_t<sizeof(Element) == 8, int64_t, int32_t>;
  typedef Index Indices __attribute__((vector_size(sizeof(Vector))));
  const Indices left = {(lane & half ? Index(width + lane - half) : Index(lane))...};
  const Indices right = {(lane & half ? Index(width + lane) : Index(lane + half))...};
  upper = __builtin_shuffle(old, lower, left);
  lower = __builtin_shuffle(old, lower, right);
#endif
}

template <int half, class Vector, int width>
RUSH_ALWAYS_INLINE void transpose_squares(Vector (&rows)[width]) {
  if constexpr (half < width) {
#pragma GCC unroll 16
    for (int i = 0; i < width; ++i) {
      if ((i & half) == 0) {
        exchange_quarters<half>(rows[i], rows[i + half], std::make_index_sequence<static_cast<size_t>(width)>());
      }
    }
    transpose_squares<2 * half>(rows);
  }
}

}  // namespace detail

// As many rows as a vector has numbers become columns, in log2 of that many rounds (J. O. Eklundh, "A fast computer
// method for matrix transposing", IEEE Transactions on Computers C-21, 1972).
template <class Vector, int width>
RUSH_ALWAYS_INLINE void transpose_square(Vector (&rows)[width]) {
  detail::transpose_squares<1>(rows);
}

}  // namespace rush::cpu
