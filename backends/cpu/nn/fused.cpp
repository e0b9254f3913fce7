// Fused operators, which on the CPU call the kernels that they fuse: the caches hold the intermediate results.
#include "core/ops/nn/fused.h"

#include "backends/cpu/register.h"
#include "core/ops/optim/foreach.h"

namespace rush::cpu {

void register_fused() {
  kernels::add_layer_norm.set_by_parts(kCPU, native::add_layer_norm_by_parts);
  kernels::add_layer_norm_backward.set_by_parts(kCPU, native::add_layer_norm_backward_by_parts);
  kernels::linear_gelu.set_by_parts(kCPU, native::linear_gelu_by_parts);
  kernels::gelu_bias_backward.set_by_parts(kCPU, native::gelu_bias_backward_by_parts);
  kernels::foreach_norm.set_by_parts(kCPU, native::foreach_norm_by_parts);
  kernels::foreach_mul.set_by_parts(kCPU, native::foreach_mul_by_parts);
  kernels::foreach_copy.set_by_parts(kCPU, native::foreach_copy_by_parts);
  kernels::foreach_blocks.set_by_parts(kCPU, native::foreach_blocks_by_parts);
  kernels::linear_parameter_gradients.set_by_parts(kCPU, native::linear_parameter_gradients_by_parts);
}

}  // namespace rush::cpu
