#include "backends/functors/bessel.h"

#include "backends/cuda/kernels/pointwise/register_pointwise.h"
#include "backends/cuda/kernels/pointwise/set_kernels.h"
#include "backends/functors/incomplete_gamma.h"

namespace rush::cuda {

void register_bessel() {
  set_kernels(functors::BesselTable());
  set_kernels(functors::IncompleteGammaTable());
}

}  // namespace rush::cuda
