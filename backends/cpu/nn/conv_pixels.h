// Convolutions that are products of matrices, so that no image is copied: those that see one pixel at a time, and
// those that see a whole image at once.
#pragma once
#include <optional>

#include "core/ops/linalg/matmul.h"
#include "core/ops/nn/conv.h"
#include "core/ops/view/copy.h"
#include "core/tensor.h"

namespace rush::cpu {

// The format of both images in which a convolution `to` of `from`, or a transposed one, that sees one pixel at a time
// is a product.
inline std::optional<MemoryFormat> pixel_product(const Tensor& to, const Tensor& from, const Tensor& weight,
                                                 const ConvGeometry& g) {
  const std::array<int64_t, 3> ones = {1, 1, 1};
  if (g.groups != 1 || g.stride != ones || g.padding != std::array<int64_t, 3>{}) return {};
  if (weight.numel() != weight.size(0) * weight.size(1)) return {};
  const auto agree = [&](MemoryFormat format) { return to.is_contiguous(format) && from.is_contiguous(format); };
  if (agree(MemoryFormat::ChannelsLast3d)) return MemoryFormat::ChannelsLast3d;
  // Each row-major image is packed for a product of its own, which a few pixels or channels do not repay.
  const int64_t channels = from.size(1), pixels = from.size(2) * from.size(3) * from.size(4);
  if (channels >= 48 && pixels >= 128 && agree(MemoryFormat::Contiguous)) return MemoryFormat::Contiguous;
  return {};
}

// Whether the kernel is as large as the image, which gives one pixel.
inline bool is_image_product(const Tensor& input, const Tensor& output, const Tensor& weight, const ConvGeometry& g) {
  const auto agree = [&](MemoryFormat format) { return input.is_contiguous(format) && weight.is_contiguous(format); };
  return g.groups == 1 && g.padding == std::array<int64_t, 3>{} && input.sizes().slice(1) == weight.sizes().slice(1) &&
         output.numel() > 0 && output.numel() == output.size(0) * output.size(1) && output.is_contiguous() &&
         (agree(MemoryFormat::Contiguous) || agree(MemoryFormat::ChannelsLast3d));
}

// (N, ...) -> (1, N, all the rest)
inline Tensor rows_of(const Tensor& t) {
  const int64_t columns = t.numel() / t.size(0);
  return rush::detail::make_view(t, {1, t.size(0), columns}, {t.numel(), columns, 1}, t.storage_offset());
}

// (N, C, D, H, W) -> (1, N*D*H*W, C), or where the channels are not last (N, D*H*W, C)
inline Tensor pixels_of(const Tensor& image, MemoryFormat format) {
  const int64_t n = image.size(0), channels = image.size(1), pixels = image.numel() / channels;
  const auto view = [&](IntArrayRef sizes, IntArrayRef strides) {
    return rush::detail::make_view(image, sizes, strides, image.storage_offset());
  };
  if (format == MemoryFormat::ChannelsLast3d) return view({1, pixels, channels}, {image.numel(), channels, 1});
  return view({n, pixels / n, channels}, {image.numel() / n, 1, pixels / n});
}

// (O, C, 1, 1, 1) -> (batch, O, C)
inline Tensor matrix_of_weight(const Tensor& weight, int64_t batch = 1) {
  return rush::detail::make_view(weight, {batch, weight.size(0), weight.size(1)},
                                 {0, weight.stride(0), weight.stride(1)}, weight.storage_offset());
}

// (batch, n, m) -> (batch, m, n)
inline Tensor turned(const Tensor& matrix) {
  return rush::detail::make_view(matrix, {matrix.size(0), matrix.size(2), matrix.size(1)},
                                 {matrix.stride(0), matrix.stride(2), matrix.stride(1)}, matrix.storage_offset());
}

// to (batch, P, O) = from (batch, P, C) factor (batch, C, O) + bias, which may be undefined.
inline void multiply_pixels(const Tensor& to, const Tensor& from, const Tensor& factor, const Tensor& bias) {
  if (bias.defined()) return kernels::gemm_bias(kCPU, to, from, factor, native::contiguous(bias));
  kernels::gemm(kCPU, to, from, factor, 0, 1);
}

}  // namespace rush::cpu
