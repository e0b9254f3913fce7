#include "backends/functors/compare.h"

#include "backends/cuda/kernels/pointwise/register_pointwise.h"
#include "backends/cuda/kernels/pointwise/set_kernels.h"

namespace rush::cuda {

void register_bitwise() { set_kernels(functors::LogicTable()); }

}  // namespace rush::cuda
