// Recurrent layers through cuDNN: all layers and directions of an RNN, LSTM or GRU in one call.
#pragma once
#include "core/ops/nn/cudnn_rnn.h"

namespace rush::cuda {

// kernels::cudnn_is_acceptable, cudnn_rnn and cudnn_rnn_backward (core/ops/nn/cudnn_rnn.h). Throw CudaError where cuDNN
// refuses, and NotImplementedError where it is not acceptable.
void dnn_is_acceptable(bool& acceptable, ScalarType dtype);
void dnn_rnn(RecurrentOutput& output, const RecurrentLayers& layers, const RecurrentInput& input, TensorList weights,
             bool train);
void dnn_rnn_backward(RecurrentGradients& grads, const RecurrentLayers& layers, const RecurrentInput& input,
                      TensorList weights, const RecurrentOutput& output, const RecurrentOutput& grad, bool weights_too);

}  // namespace rush::cuda
