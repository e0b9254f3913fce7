// The CUDA backend's kernels, a file a family, and its runtime.
#pragma once

namespace rush {

// Installs the CUDA runtime and allocators and sets the CUDA kernel of every operator. Touches no device.
void register_cuda();

namespace cuda {
void register_runtime();
void register_copy();
void register_foreach();
void register_gelu_bias_backward();
void register_capturable_optim();
void register_linear_epilogues();
void register_matmul();
void register_nccl();
void register_nvtx();
void register_conv();
void register_ctc_loss();
void register_fft();
void register_rnn();
void register_sparse();
}  // namespace cuda

}  // namespace rush
