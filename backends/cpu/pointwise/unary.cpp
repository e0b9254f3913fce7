// Signs, rounding, predicates: kernels of one operand that are cheap.
#include "backends/functors/unary.h"

#include "backends/cpu/pointwise/set_kernels.h"
#include "backends/cpu/register.h"

namespace rush::cpu {

void register_unary() { set_kernels(functors::UnaryTable()); }

}  // namespace rush::cpu
