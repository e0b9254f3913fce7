// Convolutions by matrix products, for what cuDNN does not compute: integers, complex numbers and unusual sizes.
#pragma once
#include "core/ops/nn/conv.h"

namespace rush::cuda {

// The three kernels of core/ops/nn/conv.h, without the bias, for every dtype that gemm takes and any strides.
void conv_by_gemm(const Tensor& output, const Tensor& input, const Tensor& weight, const ConvGeometry& geometry);
void conv_transpose_by_gemm(const Tensor& input, const Tensor& output, const Tensor& weight,
                            const ConvGeometry& geometry);
void conv_weight_by_gemm(const Tensor& weight, const Tensor& output, const Tensor& input, const ConvGeometry& geometry);

}  // namespace rush::cuda
