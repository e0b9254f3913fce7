#include "core/ops/nn/im2col.h"

#include <algorithm>

#include "core/ops/register.h"
#include "core/ops/view/copy.h"
#include "core/size_arithmetic.h"

namespace rush {

namespace native {

namespace {

ImageWindows make_windows(IntArrayRef image, IntArrayRef kernel, IntArrayRef dilation, IntArrayRef padding,
                          IntArrayRef stride, const char* op) {
  RUSH_CHECK_VALUE(
      image.size() == 2 && kernel.size() == 2 && dilation.size() == 2 && padding.size() == 2 && stride.size() == 2, op,
      ": expected two numbers each, got image ", image, ", kernel_size ", kernel, ", dilation ", dilation, ", padding ",
      padding, ", stride ", stride);
  ImageWindows windows{};
  for (size_t d = 0; d < 2; ++d) {
    RUSH_CHECK_VALUE(kernel[d] > 0 && dilation[d] > 0 && stride[d] > 0 && padding[d] >= 0, op,
                     ": expected a kernel_size, dilation and stride above 0 and a padding of at least 0, got ", kernel,
                     ", ", dilation, ", ", stride, " and ", padding);
    const int64_t padded = padded_size(op, image[d], padding[d]), reach = window_reach(op, kernel[d], dilation[d]);
    RUSH_CHECK_VALUE(image[d] > 0 && padded > reach, op, ": a window of ", kernel, " with dilation ", dilation,
                     " does not fit an image of ", image, " with padding ", padding);
    windows.image[d] = image[d];
    windows.kernel[d] = kernel[d];
    windows.padding[d] = padding[d];
    // What leads beyond the padded image is taken by no window: kernels may multiply with the rest.
    windows.dilation[d] = std::min(dilation[d], padded);
    windows.stride[d] = std::min(stride[d], padded);
    windows.count[d] = (padded - 1 - reach) / stride[d] + 1;
  }
  return windows;
}

Tensor im2col(const Tensor& self, IntArrayRef kernel_size, IntArrayRef dilation, IntArrayRef padding,
              IntArrayRef stride) {
  constexpr const char* op = "im2col";
  const size_t dims = self.sizes().size();
  RUSH_CHECK_VALUE((dims == 3 || dims == 4) && self.sizes()[dims - 3] > 0, op,
                   ": expected (N, C, H, W) or (C, H, W), got shape ", self.sizes());
  const ImageWindows windows = make_windows(self.sizes().slice(dims - 2), kernel_size, dilation, padding, stride, op);
  DimVector sizes(self.sizes().slice(0, dims - 3));
  sizes.push_back(checked_numel({self.sizes()[dims - 3], kernel_size[0], kernel_size[1]}));
  sizes.push_back(checked_numel({windows.count[0], windows.count[1]}));
  const Tensor columns = detail::empty_contiguous(sizes, self.scalar_type(), self.device());
  kernels::im2col(self.device().type, columns, contiguous(self), windows);
  return columns;
}

Tensor col2im(const Tensor& self, IntArrayRef output_size, IntArrayRef kernel_size, IntArrayRef dilation,
              IntArrayRef padding, IntArrayRef stride) {
  constexpr const char* op = "col2im";
  const size_t dims = self.sizes().size();
  RUSH_CHECK_VALUE(dims == 2 || dims == 3, op, ": expected (N, C * kh * kw, L) or (C * kh * kw, L), got shape ",
                   self.sizes());
  const ImageWindows windows = make_windows(output_size, kernel_size, dilation, padding, stride, op);
  const int64_t rows = self.sizes()[dims - 2], kernel = checked_numel(kernel_size);
  RUSH_CHECK_VALUE(rows > 0 && rows % kernel == 0, op, ": ", rows, " rows are not a multiple of a window of ",
                   kernel_size);
  const int64_t count = checked_numel({windows.count[0], windows.count[1]});
  RUSH_CHECK_VALUE(self.sizes()[dims - 1] == count, op, ": got ", self.sizes()[dims - 1], " columns, an image of ",
                   output_size, " has ", count, " windows");
  DimVector sizes(self.sizes().slice(0, dims - 2));
  sizes.push_back(rows / kernel);
  sizes.push_back(output_size[0]);
  sizes.push_back(output_size[1]);
  const Tensor images = detail::empty_contiguous(sizes, self.scalar_type(), self.device());
  kernels::col2im(self.device().type, images, contiguous(self), windows);
  return images;
}

}  // namespace

}  // namespace native

void register_im2col_ops(Registry& r) {
  r.native(ops::im2col, native::im2col);
  r.native(ops::col2im, native::col2im);
}

}  // namespace rush
