// What stands for this folder where cuDNN is not built in: everything goes through Rushlight's own kernels.
#include "backends/cuda/dnn/attention.h"
#include "backends/cuda/dnn/batch_norm.h"
#include "backends/cuda/dnn/conv.h"
#include "backends/cuda/dnn/rnn.h"

namespace rush::cuda {

bool dnn_convolution(ConvDirection, const Tensor&, const Tensor&, const Tensor&, const Tensor&, const ConvGeometry&) {
  return false;
}

bool dnn_batch_norm(const Tensor&, const Tensor&, const Tensor&, const Tensor&, const Tensor&, const Tensor&,
                    const Tensor&, double, bool, const kernels::ChannelLayout&) {
  return false;
}

bool dnn_batch_norm_backward(const Tensor&, const Tensor&, const Tensor&, const Tensor&, const Tensor&, const Tensor&,
                             const Tensor&, const Tensor&, bool, const kernels::ChannelLayout&) {
  return false;
}

void dnn_attention(const Tensor&, const Tensor&, const AttentionProblem&) {
  RUSH_THROW(NotImplementedError, "_scaled_dot_product_cudnn_attention: this library was built without cuDNN");
}

void dnn_attention_backward(const std::array<Tensor, 3>&, const Tensor&, const Tensor&, const Tensor&,
                            const AttentionProblem&) {
  RUSH_THROW(NotImplementedError, "_scaled_dot_product_cudnn_attention_backward: this library was built without cuDNN");
}

void dnn_attention_refusal(const char*& why, const AttentionProblem&, bool) {
  why = "this library was built without cuDNN";
}

void dnn_is_acceptable(bool& acceptable, ScalarType) { acceptable = false; }

void dnn_rnn(RecurrentOutput&, const RecurrentLayers&, const RecurrentInput&, TensorList, bool) {
  RUSH_THROW(NotImplementedError, "_cudnn_rnn: this library was built without cuDNN");
}

void dnn_rnn_backward(RecurrentGradients&, const RecurrentLayers&, const RecurrentInput&, TensorList,
                      const RecurrentOutput&, const RecurrentOutput&, bool) {
  RUSH_THROW(NotImplementedError, "_cudnn_rnn_backward: this library was built without cuDNN");
}

}  // namespace rush::cuda
