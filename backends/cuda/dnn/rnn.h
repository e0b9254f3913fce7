// Recurrent layers through cuDNN: all layers and directions of an RNN, LSTM or GRU in one call.
#pragma once
#include <vector>

#include "core/tensor.h"

namespace rush::cuda {

// cuDNN's numbers.
enum class RnnMode { Relu = 0, Tanh = 1, Lstm = 2, Gru = 3 };

// The layers, without dropout between them.
struct RnnLayers {
  RnnMode mode = RnnMode::Tanh;
  int64_t input_size = 0, hidden_size = 0;
  int64_t projection = 0;  // of an LSTM's h; 0: none
  int64_t layers = 1;
  bool bidirectional = false, biases = true;

  int64_t directions() const { return bidirectional ? 2 : 1; }
  int64_t output_size() const { return projection > 0 ? projection : hidden_size; }
  // How many tensors each layer and direction has: weight_ih, weight_hh, bias_ih, bias_hh, weight_hr.
  int64_t weights_per_cell() const { return 2 + (biases ? 2 : 0) + (projection > 0 ? 1 : 0); }
};

// Sequences: (T, N, ...) where all are as long, or packed, (sum of batch_sizes, ...): step t has the first
// batch_sizes[t] of them, as in nn::utils::rnn::PackedSequence.
struct RnnInput {
  Tensor data;
  IntArrayRef batch_sizes;  // empty: not packed
  Tensor h, c;              // (layers * directions, N, output size), (.., hidden size); c undefined unless LSTM
};

struct RnnOutput {
  Tensor data, h, c;        // like the input's; data has directions * output size
  Tensor weights, reserve;  // for the backward pass; reserve is undefined unless training
};

struct RnnGradients {
  Tensor data, h, c;
  std::vector<Tensor> weights;  // in the order of the weights
};

// Whether cuDNN is built in, switched on and has recurrent layers of this dtype.
bool dnn_has_rnn(ScalarType dtype);

// `weights` are those of each layer and, in it, direction, in the order of weights_per_cell. All tensors have one
// dtype. Throws CudaError where cuDNN refuses.
RnnOutput dnn_rnn(const RnnLayers& layers, const RnnInput& input, TensorList weights, bool training);
// The gradients, for those of the outputs, of which any may be undefined. Writes to output.reserve, so that it may be
// called once. The gradients of weights are views of one tensor.
RnnGradients dnn_rnn_backward(const RnnLayers& layers, const RnnInput& input, TensorList weights,
                              const RnnOutput& output, const Tensor& grad_data, const Tensor& grad_h,
                              const Tensor& grad_c);

}  // namespace rush::cuda
