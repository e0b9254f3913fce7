// Convolutions through cuDNN.
#pragma once
#include "core/ops/conv.h"

namespace rush::cuda {

enum class ConvDirection : int32_t { Output, InputGradient, WeightGradient };

// Computes the tensor that `direction` names from the other two, of five dimensions as in kernels::convolution. False,
// with nothing done, where cuDNN is switched off or not built in, or has no plan for this dtype and these sizes.
bool dnn_convolution(ConvDirection direction, const Tensor& input, const Tensor& weight, const Tensor& output,
                     const ConvGeometry& geometry);

}  // namespace rush::cuda
