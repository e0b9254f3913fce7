#include "backends/cuda/kernels/pointwise/register_pointwise.h"

namespace rush::cuda {

void register_pointwise() {
#define RUSH_CALL(function) function();
  RUSH_FORALL_CUDA_POINTWISE(RUSH_CALL)
#undef RUSH_CALL
}

}  // namespace rush::cuda
