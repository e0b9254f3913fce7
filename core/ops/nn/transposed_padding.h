// What both backends ask of a transposed convolution.
#pragma once
#include "core/ops/nn/conv.h"

namespace rush::native {

// Whether the output padding reaches the stride in some dimension of the transposed convolution that makes `input`
// from `output`. PyTorch computes those in another way than the rest, by columns of the tensor's own dtype: 16-bit
// answers are close to its only if they are rounded where it rounds them.
inline bool output_padding_reaches_stride(const Tensor& input, const Tensor& output, const Tensor& weight,
                                          const ConvGeometry& geometry) {
  for (size_t d = 0; d < 3; ++d) {
    const auto dim = static_cast<int64_t>(d + 2);
    const int64_t seen =
        (output.size(dim) - 1) * geometry.stride[d] + geometry.dilation[d] * (weight.size(dim) - 1) + 1;
    if (input.size(dim) + 2 * geometry.padding[d] - seen >= geometry.stride[d]) return true;
  }
  return false;
}

}  // namespace rush::native
