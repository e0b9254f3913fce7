#include "backends/functors/unary.h"

#include "backends/cuda/kernels/pointwise/register_pointwise.h"
#include "backends/cuda/kernels/pointwise/set_kernels.h"

namespace rush::cuda {

void register_trigonometry() { set_kernels(functors::TrigonometryTable()); }

}  // namespace rush::cuda
