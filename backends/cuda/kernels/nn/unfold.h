// The windows that a convolution sees, as rows of a matrix, and the sum of such rows where their windows lie.
#pragma once
#include "core/ops/nn/conv.h"

namespace rush::cuda {

// image (N, C, D, H, W); rows (N * OD * OH * OW, groups, C / groups * KD * KH * KW), row-major. Any strides.
struct WindowLayout {
  int64_t batch, channels, groups;
  std::array<int64_t, 3> image, kernel, windows;
  ConvGeometry geometry;
  std::array<int64_t, 5> strides;  // of the image

  int64_t taps() const { return kernel[0] * kernel[1] * kernel[2]; }
  int64_t depth() const { return channels / groups * taps(); }
  int64_t row_count() const { return batch * windows[0] * windows[1] * windows[2]; }
};

// rows = the image's windows, zero outside it (im2col).
void unfold(const Tensor& rows, const Tensor& image, const WindowLayout& layout);
// image = for each element the sum of what rows hold for it (col2im), in a fixed order.
void fold(const Tensor& image, const Tensor& rows, const WindowLayout& layout);

}  // namespace rush::cuda
