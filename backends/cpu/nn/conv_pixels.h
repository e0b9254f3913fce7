// Convolutions that see one pixel at a time. Where channels come last, they are products of matrices, and no image is
// copied.
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
