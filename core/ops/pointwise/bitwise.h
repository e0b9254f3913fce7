// Logical and bitwise operators on two tensors.
#pragma once
#include "core/ops/pointwise/pointwise.h"

namespace rush {

namespace ops {
#define RUSH_DECLARE_OPS(name)                                                            \
  inline constinit BinaryOp name{"aten::" #name "(Tensor self, Tensor other) -> Tensor"}; \
  inline constinit BinaryInplaceOp name##_{"aten::" #name "_(Tensor(a!) self, Tensor other) -> Tensor(a!)"};
RUSH_FORALL_LOGICAL(RUSH_DECLARE_OPS)
#undef RUSH_DECLARE_OPS

#define RUSH_DECLARE_OPS(name)                                                                   \
  inline constinit BinaryOp name{"aten::" #name ".Tensor(Tensor self, Tensor other) -> Tensor"}; \
  inline constinit BinaryInplaceOp name##_{"aten::" #name "_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)"};
RUSH_FORALL_BITWISE(RUSH_DECLARE_OPS)
#undef RUSH_DECLARE_OPS

// ATen calls the number of a shift Tensor_Scalar's, that of the others Scalar's.
#define RUSH_DECLARE_OPS(name, overload)                                                                        \
  inline constinit ScalarOp name##_Scalar{"aten::" #name "." overload "(Tensor self, Scalar other) -> Tensor"}; \
  inline constinit ScalarInplaceOp name##_Scalar_{"aten::" #name "_." overload                                  \
                                                  "(Tensor(a!) self, Scalar other) -> Tensor(a!)"};             \
  inline constinit Op<Tensor(const Scalar&, const Tensor&)> name##_Scalar_Tensor{                               \
      "aten::" #name ".Scalar_Tensor(Scalar self, Tensor other) -> Tensor"};
RUSH_DECLARE_OPS(bitwise_and, "Scalar")
RUSH_DECLARE_OPS(bitwise_or, "Scalar")
RUSH_DECLARE_OPS(bitwise_xor, "Scalar")
RUSH_DECLARE_OPS(bitwise_left_shift, "Tensor_Scalar")
RUSH_DECLARE_OPS(bitwise_right_shift, "Tensor_Scalar")
#undef RUSH_DECLARE_OPS
}  // namespace ops

// What each computes is in core/ops/pointwise/pointwise_tables.h. Bitwise operators throw on floating point and
// complex.
#define RUSH_DEFINE_FUNCTION(name) \
  inline Tensor name(const Tensor& self, const Tensor& other) { return ops::name(self, other); }
#define RUSH_DEFINE_FUNCTIONS(name)                                                        \
  RUSH_DEFINE_FUNCTION(name)                                                               \
  inline Tensor name(const Tensor& self, const Scalar& other) { return self.name(other); } \
  inline Tensor name(const Scalar& self, const Tensor& other) {                            \
    return ops::name(detail::wrapped_number(self, other), other);                          \
  }
RUSH_FORALL_LOGICAL(RUSH_DEFINE_FUNCTION)
RUSH_FORALL_BITWISE(RUSH_DEFINE_FUNCTIONS)
#undef RUSH_DEFINE_FUNCTIONS
#undef RUSH_DEFINE_FUNCTION
// The same as bitwise_and, bitwise_or and bitwise_xor.
#define RUSH_DEFINE_OPERATOR(symbol, name)                                                    \
  inline Tensor operator symbol(const Tensor& a, const Tensor& b) { return ops::name(a, b); } \
  inline Tensor operator symbol(const Tensor& a, const Scalar& b) { return a.name(b); }       \
  inline Tensor operator symbol(const Scalar& a, const Tensor& b) { return name(a, b); }
RUSH_DEFINE_OPERATOR(&, bitwise_and)
RUSH_DEFINE_OPERATOR(|, bitwise_or)
RUSH_DEFINE_OPERATOR(^, bitwise_xor)
#undef RUSH_DEFINE_OPERATOR

namespace kernels {
#define RUSH_DECLARE_KERNEL(name) inline constinit PointwiseKernel name{#name};
RUSH_FORALL_LOGICAL(RUSH_DECLARE_KERNEL)
RUSH_FORALL_BITWISE(RUSH_DECLARE_KERNEL)
#undef RUSH_DECLARE_KERNEL
}  // namespace kernels

}  // namespace rush
