#include "backends/functors/unary.h"

#include "backends/cuda/kernels/pointwise/register_pointwise.h"
#include "backends/cuda/kernels/pointwise/set_kernels.h"

namespace rush::cuda {

void register_unary_math() { set_kernels(functors::UnaryMathTable()); }

}  // namespace rush::cuda
