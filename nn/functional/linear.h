#pragma once
#include "core/tensor.h"

namespace rush::nn::functional {

/// input weight^T + bias: (..., in) x (out, in) -> (..., out).
Tensor linear(const Tensor& input, const Tensor& weight, const Tensor& bias = {});
/// y_k = x1^T weight_k x2 + bias_k: (..., in1), (..., in2), (out, in1, in2) -> (..., out).
Tensor bilinear(const Tensor& input1, const Tensor& input2, const Tensor& weight, const Tensor& bias = {});

}  // namespace rush::nn::functional
