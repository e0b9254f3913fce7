// What stands for this folder where cuDNN is not built in: everything goes through Rushlight's own kernels.
#include "backends/cuda/dnn/batch_norm.h"
#include "backends/cuda/dnn/conv.h"

namespace rush::cuda {

bool dnn_convolution(ConvDirection, const Tensor&, const Tensor&, const Tensor&, const ConvGeometry&) { return false; }

bool dnn_batch_norm(const Tensor&, const Tensor&, const Tensor&, const Tensor&, const Tensor&, const Tensor&,
                    const Tensor&, double, bool, const kernels::ChannelLayout&) {
  return false;
}

bool dnn_batch_norm_backward(const Tensor&, const Tensor&, const Tensor&, const Tensor&, const Tensor&, const Tensor&,
                             const Tensor&, const Tensor&, bool, const kernels::ChannelLayout&) {
  return false;
}

}  // namespace rush::cuda
