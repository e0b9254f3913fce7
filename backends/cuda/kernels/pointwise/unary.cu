#include "backends/functors/unary.h"

#include "backends/cuda/kernels/pointwise/register_pointwise.h"
#include "backends/cuda/kernels/pointwise/set_kernels.h"

namespace rush::cuda {

void register_unary() { set_kernels(functors::UnaryTable()); }

}  // namespace rush::cuda
