#include "backends/functors/activation.h"

#include "backends/cuda/kernels/pointwise/register_pointwise.h"
#include "backends/cuda/kernels/pointwise/set_kernels.h"

namespace rush::cuda {

void register_activation_backward() { set_kernels(functors::ActivationBackwardTable()); }

}  // namespace rush::cuda
