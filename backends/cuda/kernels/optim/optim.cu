// The steps of optimisers: one launch for many parameters.
#include "core/ops/optim/optim.h"

#include "backends/cuda/kernels/optim/many_tensors.h"
#include "backends/cuda/kernels/pointwise/register_pointwise.h"
#include "backends/functors/step_kernels.h"

namespace rush::cuda {

namespace {

struct CudaSteps {
  template <class T, class StepOf, class... States>
  static void run_steps(const char* op, const StepOf& step_of, TensorList params, TensorList grads,
                        const States&... states) {
    launch_steps<T>(op, step_of, params, grads, states...);
  }
};

}  // namespace

void register_optim() { functors::set_steps<CudaSteps>(kCUDA); }

}  // namespace rush::cuda
