// Convolutions through cuDNN.
#pragma once
#include "core/ops/nn/conv.h"

namespace rush::cuda {

enum class ConvDirection : int32_t { Output, InputGradient, WeightGradient };

// Computes the tensor that `direction` names from the other two, of five dimensions as in kernels::convolution, and
// adds a number to each of its channels before it is rounded, where `bias` is defined. It has the dtype of the others,
// or is float32 where they are 16-bit. False, with nothing done, where cuDNN is switched off or not built in, or has no
// plan for these dtypes, these sizes and a bias.
bool dnn_convolution(ConvDirection direction, const Tensor& input, const Tensor& weight, const Tensor& output,
                     const Tensor& bias, const ConvGeometry& geometry);

}  // namespace rush::cuda
