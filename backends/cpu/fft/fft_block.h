// Moves lines of a tensor into the planes of Note [Lines side by side], and back.
#pragma once
#include <algorithm>

#include "backends/cpu/fft/fft_lanes.h"
#include "backends/cpu/view/transpose.h"
#include "core/complex.h"

namespace rush::cpu {

// Up to kFftLanes<T> lines of complex (E = complex<T>) or real (E = T) numbers, one for each lane.
template <class T, class E>
struct LineBlock {
  static constexpr int kWidth = kFftLanes<T>;
  static constexpr int kPlanes = sizeof(E) / sizeof(T);

  E* line[kWidth];  // from index `count` on, the address of line 0, which is safe to read
  int count;
  int64_t step;  // elements from one point to the next

  LineBlock(E* first, int64_t distance, int64_t step, int64_t count_left)
      : count(static_cast<int>(std::min<int64_t>(count_left, kWidth))), step(step) {
    for (int j = 0; j < kWidth; ++j) line[j] = first + (j < count ? j : 0) * distance;
  }
  template <class At>
  LineBlock(const At& at, int64_t step, int64_t count_left)
      : count(static_cast<int>(std::min<int64_t>(count_left, kWidth))), step(step) {
    for (int j = 0; j < kWidth; ++j) line[j] = at(j < count ? j : 0);
  }

  // Whether neighbouring lines have stride 1, and there are kWidth of them.
  bool is_row() const {
    bool row = count == kWidth;
    for (int j = 1; j < kWidth; ++j) row = row && line[j] == line[0] + j;
    return row;
  }
};

namespace detail {

// Prefetches the vectors behind a row, which the next block probably reads. The CPU's prefetchers do not predict that.
template <bool to_write, class Vector>
RUSH_ALWAYS_INLINE void prefetch_next(const Vector* row, int vectors) {
  const auto* next = reinterpret_cast<const char*>(row + vectors);
  for (int byte = 0; byte < vectors * kVectorBytes; byte += 64) __builtin_prefetch(next + byte, to_write, 2);
}

template <class T, size_t... lane>
RUSH_ALWAYS_INLINE Lanes<T> split_pairs(const FftVector<T>& low, const FftVector<T>& high,
                                        std::index_sequence<lane...>) {
#ifdef __clang__
  return {__builtin_shufflevector(low, high, int(2 * lane)...),
          __builtin_shufflevector(low, high, int(2 * lane + 1)...)};
#else
  using Index = std::conditional_t<sizeof(T) == 8, int64_t, int32_t>;
  typedef Index Indices __attribute__((vector_size(kVectorBytes)));
  return {__builtin_shuffle(low, high, Indices{Index(2 * lane)...}),
          __builtin_shuffle(low, high, Indices{Index(2 * lane + 1)...})};
#endif
}

template <class T, size_t... lane>
RUSH_ALWAYS_INLINE void join_pairs(const Lanes<T>& z, FftVector<T>& low, FftVector<T>& high,
                                   std::index_sequence<lane...>) {
  constexpr size_t width = sizeof...(lane);
#ifdef __clang__
  low = __builtin_shufflevector(z.re, z.im, int(lane / 2 + lane % 2 * width)...);
  high = __builtin_shufflevector(z.re, z.im, int((lane + width) / 2 + lane % 2 * width)...);
#else
  using Index = std::conditional_t<sizeof(T) == 8, int64_t, int32_t>;
  typedef Index Indices __attribute__((vector_size(kVectorBytes)));
  low = __builtin_shuffle(z.re, z.im, Indices{Index(lane / 2 + lane % 2 * width)...});
  high = __builtin_shuffle(z.re, z.im, Indices{Index((lane + width) / 2 + lane % 2 * width)...});
#endif
}

}  // namespace detail

// Loads points [0, points) of the lines into one plane, or into two if they are complex.
template <class T, class E>
void load_lines(const LineBlock<T, E>& block, int64_t points, FftVector<T>* const (&planes)[LineBlock<T, E>::kPlanes]) {
  using V = FftVector<T>;
  using Anywhere = typename VectorOf<T, kVectorBytes>::type;
  constexpr int width = kFftLanes<T>, count = LineBlock<T, E>::kPlanes;
  constexpr auto lanes = std::make_index_sequence<static_cast<size_t>(width)>();
  const auto number = [&](int j, int64_t k) { return reinterpret_cast<const T*>(block.line[j] + k * block.step); };
  int64_t k = 0;
  if (constexpr int at_once = width / count; block.step == 1 && points >= at_once) {
    for (; k < points; k += at_once) {
      const int64_t first = std::min(k, points - at_once);  // the last square begins within the one before
      V rows[width];
#pragma GCC unroll 16
      for (int j = 0; j < width; ++j) rows[j] = *reinterpret_cast<const Anywhere*>(number(j, first));
      transpose_square(rows);
#pragma GCC unroll 16
      for (int i = 0; i < width; ++i) planes[i % count][first + i / count] = rows[i];
    }
  } else if (block.is_row()) {
    for (; k < points; ++k) {
      const auto* row = reinterpret_cast<const Anywhere*>(number(0, k));
      detail::prefetch_next<false>(row, count);
      if constexpr (count == 1) {
        planes[0][k] = row[0];
      } else {
        const V low = row[0], high = row[1];
        const Lanes<T> z = detail::split_pairs<T>(low, high, lanes);
        planes[0][k] = z.re;
        planes[1][k] = z.im;
      }
    }
  }
  for (; k < points; ++k) {
    for (int p = 0; p < count; ++p) {
      for (int j = 0; j < width; ++j) planes[p][k][j] = number(j, k)[p];
    }
  }
}

// Stores `scale` times the points [0, points) of one or two planes to the lines.
template <class T, class E>
void store_lines(const LineBlock<T, E>& block, int64_t points, FftVector<T>* const (&planes)[LineBlock<T, E>::kPlanes],
                 T scale) {
  using V = FftVector<T>;
  using Anywhere = typename VectorOf<T, kVectorBytes>::type;
  constexpr int width = kFftLanes<T>, count = LineBlock<T, E>::kPlanes;
  constexpr auto lanes = std::make_index_sequence<static_cast<size_t>(width)>();
  const auto number = [&](int j, int64_t k) { return reinterpret_cast<T*>(block.line[j] + k * block.step); };
  int64_t k = 0;
  if (constexpr int at_once = width / count; block.step == 1 && points >= at_once) {
    for (; k < points; k += at_once) {
      const int64_t first = std::min(k, points - at_once);
      V rows[width];
#pragma GCC unroll 16
      for (int i = 0; i < width; ++i) rows[i] = planes[i % count][first + i / count] * scale;
      transpose_square(rows);
#pragma GCC unroll 16
      for (int j = 0; j < width; ++j) {
        if (j < block.count) *reinterpret_cast<Anywhere*>(number(j, first)) = rows[j];
      }
    }
  } else if (block.is_row()) {
    for (; k < points; ++k) {
      auto* row = reinterpret_cast<Anywhere*>(number(0, k));
      detail::prefetch_next<true>(row, count);
      if constexpr (count == 1) {
        row[0] = planes[0][k] * scale;
      } else {
        V low, high;
        detail::join_pairs<T>({planes[0][k] * scale, planes[1][k] * scale}, low, high, lanes);
        row[0] = low;
        row[1] = high;
      }
    }
  }
  for (; k < points; ++k) {
    for (int p = 0; p < count; ++p) {
      for (int j = 0; j < block.count; ++j) number(j, k)[p] = planes[p][k][j] * scale;
    }
  }
}

}  // namespace rush::cpu
