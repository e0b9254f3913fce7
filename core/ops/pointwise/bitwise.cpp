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

using detail::wrapped_number;
#define RUSH_DEFINE_METHODS(name)                                                    \
  Tensor Tensor::name(const Tensor& other) const { return ops::name(*this, other); } \
  Tensor& Tensor::name##_(const Tensor& other) const { return ops::name##_(self(), other); }
#define RUSH_DEFINE_SCALAR_METHODS(name)                                                                    \
  RUSH_DEFINE_METHODS(name)                                                                                 \
  Tensor Tensor::name(const Scalar& other) const { return ops::name(*this, wrapped_number(other, *this)); } \
  Tensor& Tensor::name##_(const Scalar& other) const { return ops::name##_(self(), wrapped_number(other, *this)); }
RUSH_FORALL_LOGICAL(RUSH_DEFINE_METHODS)
RUSH_FORALL_BITWISE(RUSH_DEFINE_SCALAR_METHODS)
#undef RUSH_DEFINE_SCALAR_METHODS
#undef RUSH_DEFINE_METHODS

}  // namespace rush
