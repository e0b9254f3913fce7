// The CUDA backend's kernels, a file a family, and its runtime.
#pragma once

namespace rush {

// Installs the CUDA runtime and allocators and sets the CUDA kernel of every operator. Touches no device.
void register_cuda();

namespace cuda {
// The families, in the order in which they register; the element-wise ones and the reductions follow.
// clang-format off
#define RUSH_FORALL_CUDA_FAMILIES(X)                                                                                   \
  X(register_runtime) X(register_copy) X(register_foreach) X(register_gelu_bias_backward)                              \
  X(register_capturable_optim) X(register_linear_epilogues) X(register_matmul) X(register_conv) X(register_ctc_loss)   \
  X(register_fft) X(register_rnn) X(register_recurrent_gates) X(register_sparse) X(register_nccl) X(register_nvtx)
// clang-format on
#define RUSH_DECLARE(function) void function();
RUSH_FORALL_CUDA_FAMILIES(RUSH_DECLARE)
#undef RUSH_DECLARE
}  // namespace cuda

}  // namespace rush
