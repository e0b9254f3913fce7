#include "backends/functors/special.h"

#include "backends/cuda/kernels/pointwise/register_pointwise.h"
#include "backends/cuda/kernels/pointwise/set_kernels.h"

namespace rush::cuda {

void register_special() { set_kernels(functors::SpecialTable()); }

}  // namespace rush::cuda
