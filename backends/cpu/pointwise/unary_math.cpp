// Exponentials, logarithms, trigonometry and special functions: kernels of one operand that are not cheap.
#include "backends/cpu/pointwise/set_kernels.h"
#include "backends/cpu/register.h"
#include "backends/functors/incomplete_gamma.h"
#include "backends/functors/special.h"
#include "backends/functors/unary.h"

namespace rush::cpu {

void register_unary_math() {
  set_kernels(functors::UnaryMathTable());
  set_kernels(functors::TrigonometryTable());
  set_kernels(functors::SpecialTable());
  set_kernels(functors::BesselTable());
  set_kernels(functors::IncompleteGammaTable());
}

}  // namespace rush::cpu
