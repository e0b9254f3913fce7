#include "backends/cuda/kernels/pointwise/register_pointwise.h"

namespace rush::cuda {

void register_pointwise() {
  register_activation();
  register_activation_backward();
  register_amp();
  register_binary();
  register_bitwise();
  register_compare();
  register_complex_binary();
  register_distance();
  register_division();
  register_fill();
  register_im2col();
  register_masked();
  register_optim();
  register_pad();
  register_pointwise_loss();
  register_power();
  register_random();
  register_random_order();
  register_range();
  register_rearrange();
  register_special();
  register_strided_sum();
  register_ternary();
  register_triangular();
  register_trigonometry();
  register_unary();
  register_unary_math();
  register_upsample();
}

}  // namespace rush::cuda
