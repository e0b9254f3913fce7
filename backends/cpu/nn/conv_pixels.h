// Convolutions that are products of matrices, so that no image is copied: those that see one pixel at a time, where
// channels come last, and those that see a whole image at once.
#pragma once
#include "core/ops/linalg/matmul.h"
#include "core/ops/nn/conv.h"
#include "core/ops/view/copy.h"
#include "core/tensor.h"

namespace rush::cpu {

inline bool is_pixel_product(const Tensor& input, const Tensor& output, const Tensor& weight, const ConvGeometry& g) {
  const std::array<int64_t, 3> ones = {1, 1, 1};
  return g.groups == 1 && g.stride == ones && g.padding == std::array<int64_t, 3>{} &&
         weight.numel() == weight.size(0) * weight.size(1) && input.is_contiguous(MemoryFormat::ChannelsLast3d) &&
         output.is_contiguous(MemoryFormat::ChannelsLast3d);
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

// (N, C, D, H, W) -> (1, N*D*H*W, C)
inline Tensor pixels_of(const Tensor& image) {
  const int64_t channels = image.size(1);
  return rush::detail::make_view(image, {1, image.numel() / channels, channels}, {image.numel(), channels, 1},
                                 image.storage_offset());
}

// (O, C, 1, 1, 1) -> (1, O, C)
inline Tensor matrix_of_weight(const Tensor& weight) {
  return rush::detail::make_view(weight, {1, weight.size(0), weight.size(1)},
                                 {weight.numel(), weight.stride(0), weight.stride(1)}, weight.storage_offset());
}

// (1, n, m) -> (1, m, n)
inline Tensor turned(const Tensor& matrix) {
  return rush::detail::make_view(matrix, {1, matrix.size(2), matrix.size(1)},
                                 {matrix.stride(0), matrix.stride(2), matrix.stride(1)}, matrix.storage_offset());
}

// to (1, P, O) = from (1, P, C) factor (1, C, O) + bias, which may be undefined.
inline void multiply_pixels(const Tensor& to, const Tensor& from, const Tensor& factor, const Tensor& bias) {
  if (bias.defined()) return kernels::gemm_bias(kCPU, to, from, factor, native::contiguous(bias));
  kernels::gemm(kCPU, to, from, factor, 0, 1);
}

}  // namespace rush::cpu
