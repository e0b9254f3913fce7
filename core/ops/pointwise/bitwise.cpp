#include "core/ops/pointwise/bitwise.h"

#include "core/ops/register.h"

namespace rush {

void register_bitwise_ops(Registry& r) {
  using native::binary, native::binary_, native::with_scalar, native::with_scalar_, native::scalar_with;
#define RUSH_REGISTER(name)                                       \
  r.native(ops::name, binary<kernels::name, Promotion::Compare>); \
  r.native(ops::name##_, binary_<kernels::name, Promotion::Compare>);
  RUSH_FORALL_LOGICAL(RUSH_REGISTER)
#undef RUSH_REGISTER
#define RUSH_REGISTER(name)                                          \
  r.native(ops::name, binary<kernels::name, Promotion::Common>);     \
  r.native(ops::name##_, binary_<kernels::name, Promotion::Common>); \
  r.composite(ops::name##_Scalar, with_scalar<ops::name>);           \
  r.composite(ops::name##_Scalar_, with_scalar_<ops::name##_>);      \
  r.composite(ops::name##_Scalar_Tensor, scalar_with<ops::name>);
  RUSH_FORALL_BITWISE(RUSH_REGISTER)
#undef RUSH_REGISTER
}

RUSH_FORALL_LOGICAL(RUSH_BINARY_METHODS)
RUSH_FORALL_BITWISE(RUSH_BINARY_AND_SCALAR_METHODS)

}  // namespace rush
