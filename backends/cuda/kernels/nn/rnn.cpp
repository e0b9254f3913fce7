// Recurrent layers: cuDNN's, or nothing, and then their operators go step by step.
#include "backends/cuda/dnn/rnn.h"
#include "backends/cuda/register.h"

namespace rush::cuda {

void register_rnn() {
  kernels::cudnn_is_acceptable.set_by_parts(kCUDA, dnn_is_acceptable);
  kernels::cudnn_rnn.set_by_parts(kCUDA, dnn_rnn);
  kernels::cudnn_rnn_backward.set_by_parts(kCUDA, dnn_rnn_backward);
}

}  // namespace rush::cuda
