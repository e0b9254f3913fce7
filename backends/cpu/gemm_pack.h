// Packing the lanes of an ordinary strided matrix, see Note [How a product is computed].
#pragma once
#include <algorithm>

#include "backends/cpu/gemm.h"

namespace rush::cpu {

// Lane l at depth d is data[l * lane_stride + d * depth_stride].
template <class T>
struct MatrixSource : LaneSource<gemm_math_t<T>> {
  MatrixSource(const T* first, int64_t lanes_apart, int64_t depths_apart);
  const T* data;
  int64_t lane_stride, depth_stride;
};

namespace detail {

// Writes one number's planes.
template <class T, class Real>
RUSH_ALWAYS_INLINE void put(T value, Real* to, int64_t width) {
  if constexpr (is_complex_v<T>) {
    to[0] = value.real();
    to[width] = value.imag();
  } else {
    to[0] = static_cast<Real>(value);
  }
}

template <class T>
void pack_matrix(const LaneSource<gemm_math_t<T>>& source, int64_t lane, int64_t lanes, int64_t depth_begin,
                 int64_t depth, int64_t width, gemm_real_t<gemm_math_t<T>>* panel) {
  using Math = gemm_math_t<T>;
  constexpr int64_t planes = TileShape<Math>::planes;
  constexpr int64_t full = TileShape<Math>::columns;
  const auto& matrix = static_cast<const MatrixSource<T>&>(source);
  const T* from = matrix.data + lane * matrix.lane_stride + depth_begin * matrix.depth_stride;
  const int64_t step = planes * width;
  if (lanes < width) std::fill_n(panel, depth * step, 0);
  if (matrix.lane_stride == 1 && lanes == full && width == full) {
    // A constant count makes this a few vector moves.
    for (int64_t d = 0; d < depth; ++d) {
      for (int64_t l = 0; l < full; ++l) put(from[d * matrix.depth_stride + l], panel + d * planes * full + l, full);
    }
  } else if (matrix.depth_stride == 1) {
    // A transposition: as much depth at a time as a cache line of the source holds, to stay near in the panel.
    constexpr int64_t run = 64 / sizeof(T);
    for (int64_t d = 0; d < depth; d += run) {
      const int64_t end = std::min(d + run, depth);
      for (int64_t l = 0; l < lanes; ++l) {
        for (int64_t i = d; i < end; ++i) put(from[l * matrix.lane_stride + i], panel + i * step + l, width);
      }
    }
  } else {
    for (int64_t d = 0; d < depth; ++d) {
      for (int64_t l = 0; l < lanes; ++l) {
        put(from[l * matrix.lane_stride + d * matrix.depth_stride], panel + d * step + l, width);
      }
    }
  }
}

}  // namespace detail

template <class T>
MatrixSource<T>::MatrixSource(const T* first, int64_t lanes_apart, int64_t depths_apart)
    : LaneSource<gemm_math_t<T>>{&detail::pack_matrix<T>},
      data(first),
      lane_stride(lanes_apart),
      depth_stride(depths_apart) {}

}  // namespace rush::cpu
