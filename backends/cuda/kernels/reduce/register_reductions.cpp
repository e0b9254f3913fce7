#include "backends/cuda/kernels/reduce/register_reductions.h"

namespace rush::cuda {

void register_reductions() {
#define RUSH_CALL(function) function();
  RUSH_FORALL_CUDA_REDUCTIONS(RUSH_CALL)
#undef RUSH_CALL
}

}  // namespace rush::cuda
