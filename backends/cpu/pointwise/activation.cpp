#include "backends/functors/activation.h"

#include "backends/cpu/pointwise/set_kernels.h"
#include "backends/cpu/register.h"

namespace rush::cpu {

void register_activation() {
  set_kernels(functors::ActivationTable());
  set_kernels(functors::ActivationBackwardTable());
}

}  // namespace rush::cpu
