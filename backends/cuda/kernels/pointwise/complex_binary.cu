// Complex numbers from two real ones, and sums of exponentials, which complex numbers have too.
#include "backends/functors/complex.h"

#include "backends/cuda/kernels/pointwise/register_pointwise.h"
#include "backends/cuda/kernels/pointwise/set_kernels.h"
#include "backends/functors/binary.h"

namespace rush::cuda {

void register_complex_binary() {
  set_kernels(functors::ComplexTable());
  set_kernels(functors::LogAddExpTable());
}

}  // namespace rush::cuda
