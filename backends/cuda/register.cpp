#include "backends/cuda/register.h"

namespace rush {

void register_cuda(Registry&) {
  cuda::register_runtime();
  cuda::register_allocator();
  cuda::register_generator();
  cuda::register_copy();
  cuda::register_matmul();
  cuda::register_conv();
  cuda::register_ctc_loss();
}

}  // namespace rush
