// The element-wise half of the CUDA backend's kernels, a function a file.
#pragma once

namespace rush::cuda {

// Calls all below.
void register_pointwise();

void register_activation();
void register_activation_backward();
void register_amp();
void register_binary();
void register_bitwise();
void register_compare();
void register_complex_binary();
void register_distance();
void register_division();
void register_fill();
void register_im2col();
void register_masked();
void register_optim();
void register_pad();
void register_pointwise_loss();
void register_power();
void register_random();
void register_random_order();
void register_range();
void register_rearrange();
void register_special();
void register_strided_sum();
void register_ternary();
void register_triangular();
void register_trigonometry();
void register_unary();
void register_unary_math();
void register_upsample();

}  // namespace rush::cuda
