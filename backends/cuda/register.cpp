#include "backends/cuda/register.h"

#include "backends/cuda/kernels/pointwise/register_pointwise.h"
#include "backends/cuda/kernels/reduce/register_reductions.h"

namespace rush {

void register_cuda() {
  cuda::register_runtime();
  cuda::register_copy();
  cuda::register_foreach();
  cuda::register_gelu_bias_backward();
  cuda::register_capturable_optim();
  cuda::register_linear_epilogues();
  cuda::register_matmul();
  cuda::register_conv();
  cuda::register_ctc_loss();
  cuda::register_fft();
  cuda::register_rnn();
  cuda::register_sparse();
  cuda::register_nccl();
  cuda::register_nvtx();
  cuda::register_pointwise();
  cuda::register_reductions();
}

}  // namespace rush
