// How lanes are packed into panels, and the operand that is a strided matrix. See Note [How a product is computed].
#pragma once
#include <algorithm>

#include "backends/cpu/linalg/gemm.h"
#include "backends/cpu/view/transpose.h"

namespace rush::cpu {

// Lane l at depth d is data[l * lane_stride + d * depth_stride].
template <class T>
struct MatrixSource : LaneSource<gemm_math_t<T>> {
  MatrixSource(const T* first, int64_t lanes_apart, int64_t depths_apart);
  const T* data;
  int64_t lane_stride, depth_stride;
};

namespace detail {

template <class T, class Real>
RUSH_ALWAYS_INLINE void store_number(T value, Real* to, int64_t width) {
  if constexpr (is_complex_v<T>) {
    to[0] = value.real();
    to[width] = value.imag();
  } else {
    to[0] = static_cast<Real>(value);
  }
}

// Packs lanes of stride 1: from(d) is the address of the first lane at depth d.
template <class T, class From>
void pack_contiguous_lanes(const From& from, int64_t lanes, int64_t depth, int64_t width,
                           gemm_real_t<gemm_math_t<T>>* panel) {
  using Shape = TileShape<gemm_math_t<T>>;
  constexpr int64_t full = Shape::NR;
  const int64_t step = Shape::planes * width;
  if (lanes == full && width == full) {
    // The count is a constant, so the compiler makes this a few vector moves.
    for (int64_t d = 0; d < depth; ++d) {
      const T* source = from(d);
      for (int64_t l = 0; l < full; ++l) store_number(source[l], panel + d * Shape::planes * full + l, full);
    }
    return;
  }
  for (int64_t d = 0; d < depth; ++d) {
    const T* source = from(d);
    for (int64_t l = 0; l < lanes; ++l) store_number(source[l], panel + d * step + l, width);
  }
}

// Packs depths [begin, end) number by number, one cache line of each lane at a time: what is written then fits the
// cache, too.
template <class T, class From>
void pack_depths_by_number(const From& from, int64_t lanes, int64_t begin, int64_t end, int64_t width,
                           gemm_real_t<gemm_math_t<T>>* panel) {
  constexpr int64_t chunk = 64 / sizeof(T);
  const int64_t step = TileShape<gemm_math_t<T>>::planes * width;
  for (int64_t d = begin; d < end; d += chunk) {
    const int64_t stop = std::min(d + chunk, end);
    for (int64_t l = 0; l < lanes; ++l) {
      const T* source = from(l);
      for (int64_t i = d; i < stop; ++i) store_number(source[i], panel + i * step + l, width);
    }
  }
}

// Packs lanes whose depths have stride 1: from(l) is the address of lane l at the first depth. This is a transposition;
// real numbers that need no conversion are transposed by squares in registers.
template <class T, class From>
void pack_contiguous_depths(const From& from, int64_t lanes, int64_t depth, int64_t width,
                            gemm_real_t<gemm_math_t<T>>* panel) {
  int64_t done = 0;
  if constexpr (std::is_same_v<T, gemm_math_t<T>> && !is_complex_v<T> && kVectorBytes > 16) {
    constexpr int side = kVectorBytes / sizeof(T);
    using Vector = typename VectorOf<T, kVectorBytes>::type;
    for (; done + side <= depth; done += side) {
      // The last lanes come first: their whole vectors may overwrite lanes of the next depth, which are written later.
      for (int64_t first = (lanes - 1) / side * side; first >= 0; first -= side) {
        const int64_t count = std::min<int64_t>(side, lanes - first);
        Vector rows[side] = {};
#pragma GCC unroll 16
        for (int i = 0; i < side; ++i) {
          if (i < count) rows[i] = *reinterpret_cast<const Vector*>(from(first + i) + done);
        }
        transpose_square(rows);
        T* to = panel + done * width + first;
        const T* end = panel + depth * width;
#pragma GCC unroll 16
        for (int i = 0; i < side; ++i, to += width) {
          if (to + side <= end) {
            *reinterpret_cast<Vector*>(to) = rows[i];
          } else {
            for (int64_t l = 0; l < count; ++l) to[l] = rows[i][l];
          }
        }
      }
    }
  }
  pack_depths_by_number<T>(from, lanes, done, depth, width, panel);
}

// Packs lanes of any strides: at(l, d) is the number.
template <class T, class At>
void pack_strided(const At& at, int64_t lanes, int64_t depth, int64_t width, gemm_real_t<gemm_math_t<T>>* panel) {
  const int64_t step = TileShape<gemm_math_t<T>>::planes * width;
  for (int64_t d = 0; d < depth; ++d) {
    for (int64_t l = 0; l < lanes; ++l) store_number(at(l, d), panel + d * step + l, width);
  }
}

template <class Math>
void zero_panel(gemm_real_t<Math>* panel, int64_t lanes, int64_t depth, int64_t width) {
  if (lanes < width) std::fill_n(panel, depth * TileShape<Math>::planes * width, gemm_real_t<Math>(0));
}

template <class T>
void pack_matrix(const LaneSource<gemm_math_t<T>>& source, int64_t lane, int64_t lanes, int64_t depth_begin,
                 int64_t depth, int64_t width, gemm_real_t<gemm_math_t<T>>* panel) {
  const auto& m = static_cast<const MatrixSource<T>&>(source);
  const T* first = m.data + lane * m.lane_stride + depth_begin * m.depth_stride;
  zero_panel<gemm_math_t<T>>(panel, lanes, depth, width);
  if (m.lane_stride == 1) {
    pack_contiguous_lanes<T>([&](int64_t d) { return first + d * m.depth_stride; }, lanes, depth, width, panel);
  } else if (m.depth_stride == 1) {
    pack_contiguous_depths<T>([&](int64_t l) { return first + l * m.lane_stride; }, lanes, depth, width, panel);
  } else {
    pack_strided<T>([&](int64_t l, int64_t d) { return first[l * m.lane_stride + d * m.depth_stride]; }, lanes, depth,
                    width, panel);
  }
}

}  // namespace detail

template <class T>
MatrixSource<T>::MatrixSource(const T* first, int64_t lanes_apart, int64_t depths_apart)
    : LaneSource<gemm_math_t<T>>{&detail::pack_matrix<T>, lanes_apart == 1},
      data(first),
      lane_stride(lanes_apart),
      depth_stride(depths_apart) {}

// gemm_pack.cpp instantiates these: the transposition in registers takes long to compile.
extern template struct MatrixSource<float>;
extern template struct MatrixSource<double>;

}  // namespace rush::cpu
