// Depthwise convolutions of volumes.
#pragma once
#include "backends/cuda/dnn/conv.h"

namespace rush::cuda {

// Computes the tensor that `direction` names, as dnn_convolution does, if each group of the convolution has one input
// channel, there are several groups, and the volumes or the kernel are deeper than 1. False, with nothing done, if not.
bool depthwise_convolution(ConvDirection direction, const Tensor& input, const Tensor& weight, const Tensor& output,
                           const Tensor& bias, const ConvGeometry& geometry);

}  // namespace rush::cuda
