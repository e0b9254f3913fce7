// What stands for this folder where cuDNN is not built in: everything goes through Rushlight's own kernels.
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

bool dnn_has_rnn(ScalarType) { return false; }

RnnOutput dnn_rnn(const RnnLayers&, const RnnInput&, TensorList, bool) {
  RUSH_THROW(NotImplementedError, "cudnn_rnn: this library was built without cuDNN");
}

RnnGradients dnn_rnn_backward(const RnnLayers&, const RnnInput&, TensorList, const RnnOutput&, const Tensor&,
                              const Tensor&, const Tensor&) {
  RUSH_THROW(NotImplementedError, "cudnn_rnn: this library was built without cuDNN");
}

}  // namespace rush::cuda
