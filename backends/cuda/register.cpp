#include "backends/cuda/register.h"

#include "backends/cuda/kernels/pointwise/register_pointwise.h"
#include "backends/cuda/kernels/reduce/register_reductions.h"

namespace rush {

void register_cuda() {
#define RUSH_CALL(function) cuda::function();
  RUSH_FORALL_CUDA_FAMILIES(RUSH_CALL)
#undef RUSH_CALL
  cuda::register_pointwise();
  cuda::register_reductions();
}

}  // namespace rush
