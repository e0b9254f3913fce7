// The image of a convolution as an operand of a matrix product.
#pragma once
#include "backends/cpu/linalg/gemm_pack.h"

namespace rush::cpu {

// Note [Convolution as a product]
// out[o, p] = sum over k of weight[o, k] image[position(p) + tap(k)], where p counts output pixels, k counts channels
// and kernel taps, and the image is padded with zeros. The second operand (im2col) is therefore never stored: the
// address of its lane p at depth k is the sum of two offsets.
//
// With stride 1, neighbouring pixels of a row are neighbours in the image, and packing copies contiguous chunks. To
// make the chunks long, lanes count positions of the image's rows, which are longer than the output's rows. The few
// sums at the ends of rows, where the kernel reaches into the next row, are computed and discarded.
//
// The gradient by the weight is the product of the output's gradient with the same operand transposed: its lanes are k.

// The number of lane l at depth d is image[lanes[l] + depths[d]]. A null table stands for offsets 0, 1, 2, ...
template <class T>
struct ImageSource : LaneSource<gemm_math_t<T>> {
  ImageSource(const T* first, const int64_t* lane_offsets, const int64_t* depth_offsets);
  const T* image;
  const int64_t* lanes;
  const int64_t* depths;
};

// So few output channels in a group, as a depthwise convolution has, do not repay packing: the image is read where it
// lies, once for each channel and tap.
inline constexpr int64_t kFewChannels = 2;

namespace detail {

template <class T>
void pack_image(const LaneSource<gemm_math_t<T>>& source, int64_t lane, int64_t lanes, int64_t depth_begin,
                int64_t depth, int64_t width, gemm_real_t<gemm_math_t<T>>* panel) {
  const auto& s = static_cast<const ImageSource<T>&>(source);
  zero_panel<gemm_math_t<T>>(panel, lanes, depth, width);
  if (!s.lanes) {
    const int64_t* depths = s.depths + depth_begin;
    pack_contiguous_lanes<T>([&](int64_t d) { return s.image + lane + depths[d]; }, lanes, depth, width, panel);
  } else if (!s.depths) {
    const int64_t* offsets = s.lanes + lane;
    pack_contiguous_depths<T>([&](int64_t l) { return s.image + offsets[l] + depth_begin; }, lanes, depth, width,
                              panel);
  } else {
    const int64_t *offsets = s.lanes + lane, *depths = s.depths + depth_begin;
    pack_strided<T>([&](int64_t l, int64_t d) { return s.image[offsets[l] + depths[d]]; }, lanes, depth, width, panel);
  }
}

}  // namespace detail

template <class T>
ImageSource<T>::ImageSource(const T* first, const int64_t* lane_offsets, const int64_t* depth_offsets)
    : LaneSource<gemm_math_t<T>>{&detail::pack_image<T>, false},
      image(first),
      lanes(lane_offsets),
      depths(depth_offsets) {}

// gemm_pack.cpp instantiates these.
extern template struct ImageSource<float>;
extern template struct ImageSource<double>;

}  // namespace rush::cpu
