// Sliding windows of images as columns, and columns summed back into images: unfold and fold.
#pragma once
#include "core/dispatch/kernel.h"
#include "core/dispatch/op.h"

namespace rush {

namespace ops {
inline constinit Op<Tensor(const Tensor&, IntArrayRef, IntArrayRef, IntArrayRef, IntArrayRef)> im2col{
    "aten::im2col(Tensor self, int[2] kernel_size, int[2] dilation, int[2] padding, int[2] stride) -> Tensor"};
inline constinit Op<Tensor(const Tensor&, IntArrayRef, IntArrayRef, IntArrayRef, IntArrayRef, IntArrayRef)> col2im{
    "aten::col2im(Tensor self, SymInt[2] output_size, int[2] kernel_size, int[2] dilation, int[2] padding, int[2] "
    "stride) -> Tensor"};
}  // namespace ops

/// Each window of an image as a column: (N, C, H, W) -> (N, C * kh * kw, L), or without N, with zeros beyond the edges
/// and L windows in row-major order, (H + 2 padding - dilation (kh - 1) - 1) / stride + 1 of them along the height.
/// Throws ValueError when no window fits.
inline Tensor im2col(const Tensor& self, IntArrayRef kernel_size, IntArrayRef dilation, IntArrayRef padding,
                     IntArrayRef stride) {
  return ops::im2col(self, kernel_size, dilation, padding, stride);
}
/// The transpose: columns added up where their windows lie, (N, C * kh * kw, L) -> (N, C, H, W) of `output_size`.
inline Tensor col2im(const Tensor& self, IntArrayRef output_size, IntArrayRef kernel_size, IntArrayRef dilation,
                     IntArrayRef padding, IntArrayRef stride) {
  return ops::col2im(self, output_size, kernel_size, dilation, padding, stride);
}

/// Where windows lie on images; [0] is the height, [1] the width.
struct ImageWindows {
  int64_t image[2], kernel[2], dilation[2], padding[2], stride[2];
  int64_t count[2];  // of windows along each dimension
};

namespace kernels {
// Row-major. images (n, H, W), columns (n, kh * kw, L), where n counts images and channels.
inline constinit Kernel<void(const Tensor& columns, const Tensor& images, const ImageWindows& windows)> im2col{
    "im2col"};
inline constinit Kernel<void(const Tensor& images, const Tensor& columns, const ImageWindows& windows)> col2im{
    "col2im"};
}  // namespace kernels

}  // namespace rush
