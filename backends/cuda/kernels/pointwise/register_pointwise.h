// The element-wise half of the CUDA backend's kernels, a function a file.
#pragma once

namespace rush::cuda {

// Calls all below.
void register_pointwise();

// The families, in the order in which they register.
// clang-format off
#define RUSH_FORALL_CUDA_POINTWISE(X)                                                                                  \
  X(register_activation) X(register_activation_backward) X(register_amp) X(register_binary) X(register_bitwise)        \
  X(register_compare) X(register_complex_binary) X(register_cross) X(register_distance) X(register_division)           \
  X(register_fill) X(register_im2col) X(register_join) X(register_masked) X(register_optim) X(register_pad)            \
  X(register_pointwise_loss)                                                                                           \
  X(register_power) X(register_random) X(register_random_order) X(register_range) X(register_rearrange)                \
  X(register_special) X(register_strided_sum) X(register_ternary) X(register_triangular) X(register_trigonometry)      \
  X(register_bessel) X(register_unary) X(register_unary_math) X(register_upsample)
// clang-format on
#define RUSH_DECLARE(function) void function();
RUSH_FORALL_CUDA_POINTWISE(RUSH_DECLARE)
#undef RUSH_DECLARE

}  // namespace rush::cuda
