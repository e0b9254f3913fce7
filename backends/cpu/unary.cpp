#include "core/ops/unary.h"

#include "backends/cpu/loops.h"
#include "backends/cpu/register.h"
#include "backends/functors/unary.h"

namespace rush::cpu {

void register_unary() {
  kernels::neg.set(kCPU, unary<functors::Neg, NumberTypes>);
  kernels::exp.set(kCPU, unary<functors::Exp, FloatTypes>);
}

}  // namespace rush::cpu
