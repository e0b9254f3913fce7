#include "core/ops/pointwise/special.h"

#include "core/ops/register.h"

namespace rush {

void register_special_ops(Registry& r) {
  using native::binary, native::binary_;
#define RUSH_REGISTER(name, argument) r.native(ops::name, native::unary<kernels::name, Promotion::Float>);
  RUSH_FORALL_BESSEL(RUSH_REGISTER)
#undef RUSH_REGISTER
  r.native(ops::igamma, binary<kernels::igamma, Promotion::Float>);
  r.native(ops::igamma_, binary_<kernels::igamma, Promotion::Float>);
  r.native(ops::igammac, binary<kernels::igammac, Promotion::Float>);
  r.native(ops::igammac_, binary_<kernels::igammac, Promotion::Float>);
  r.native(ops::special_zeta, binary<kernels::special_zeta, Promotion::Float>);
}

RUSH_BINARY_METHODS(igamma)
RUSH_BINARY_METHODS(igammac)

}  // namespace rush
