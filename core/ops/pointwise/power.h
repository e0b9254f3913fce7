// Powers, and further functions of two numbers: angles, logarithms of sums, signs, divisors.
#pragma once
#include "core/ops/pointwise/pointwise.h"

namespace rush {

namespace ops {
inline constinit BinaryOp pow{"aten::pow.Tensor_Tensor(Tensor self, Tensor exponent) -> Tensor"};
inline constinit BinaryInplaceOp pow_{"aten::pow_.Tensor(Tensor(a!) self, Tensor exponent) -> Tensor(a!)"};
inline constinit ScalarOp pow_scalar{"aten::pow.Tensor_Scalar(Tensor self, Scalar exponent) -> Tensor"};
inline constinit ScalarInplaceOp pow_scalar_{"aten::pow_.Scalar(Tensor(a!) self, Scalar exponent) -> Tensor(a!)"};
inline constinit Op<Tensor(const Scalar&, const Tensor&)> pow_Scalar{
    "aten::pow.Scalar(Scalar self, Tensor exponent) -> Tensor"};
inline constinit BinaryOp float_power{"aten::float_power.Tensor_Tensor(Tensor self, Tensor exponent) -> Tensor"};
inline constinit ScalarOp float_power_scalar{"aten::float_power.Tensor_Scalar(Tensor self, Scalar exponent) -> Tensor"};
inline constinit Op<Tensor(const Scalar&, const Tensor&)> float_power_Scalar{
    "aten::float_power.Scalar(Scalar self, Tensor exponent) -> Tensor"};

#define RUSH_DECLARE_OPS(name, overload, other)                                                           \
  inline constinit BinaryOp name{"aten::" #name overload "(Tensor self, Tensor " #other ") -> Tensor"};   \
  inline constinit BinaryInplaceOp name##_{"aten::" #name "_" overload "(Tensor(a!) self, Tensor " #other \
                                           ") -> Tensor(a!)"};
#define RUSH_DECLARE_PLAIN(name) RUSH_DECLARE_OPS(name, "", other)
RUSH_FORALL_BINARY_MATH(RUSH_DECLARE_PLAIN)
RUSH_DECLARE_PLAIN(atan2)
RUSH_DECLARE_OPS(copysign, ".Tensor", other)
RUSH_DECLARE_OPS(heaviside, "", values)
RUSH_DECLARE_OPS(xlogy, ".Tensor", other)
#undef RUSH_DECLARE_PLAIN
#undef RUSH_DECLARE_OPS
inline constinit ScalarOp copysign_Scalar{"aten::copysign.Scalar(Tensor self, Scalar other) -> Tensor"};
inline constinit ScalarOp xlogy_Scalar_Other{"aten::xlogy.Scalar_Other(Tensor self, Scalar other) -> Tensor"};
inline constinit Op<Tensor(const Scalar&, const Tensor&)> xlogy_Scalar_Self{
    "aten::xlogy.Scalar_Self(Scalar self, Tensor other) -> Tensor"};
inline constinit BinaryOp logaddexp{"aten::logaddexp(Tensor self, Tensor other) -> Tensor"};
inline constinit BinaryOp logaddexp2{"aten::logaddexp2(Tensor self, Tensor other) -> Tensor"};
inline constinit BinaryOp special_xlog1py{"aten::special_xlog1py(Tensor self, Tensor other) -> Tensor"};
}  // namespace ops

// self to the power of exponent, in their common dtype. Throws ValueError when integers are to be raised to a negative
// integer number; in a tensor of exponents those give 0 (1 for 1, 1 or -1 for -1).
inline Tensor pow(const Tensor& self, const Tensor& exponent) { return ops::pow(self, exponent); }
inline Tensor pow(const Tensor& self, const Scalar& exponent) { return ops::pow_scalar(self, exponent); }
inline Tensor pow(const Scalar& self, const Tensor& exponent) { return ops::pow_Scalar(self, exponent); }
// pow in float64, or complex128 when an argument is complex.
inline Tensor float_power(const Tensor& self, const Tensor& exponent) { return ops::float_power(self, exponent); }
inline Tensor float_power(const Tensor& self, const Scalar& exponent) {
  return ops::float_power_scalar(self, exponent);
}
inline Tensor float_power(const Scalar& self, const Tensor& exponent) {
  return ops::float_power_Scalar(self, exponent);
}

// gcd, hypot, lcm, nextafter, logaddexp, logaddexp2: see core/ops/pointwise/pointwise_tables.h.
#define RUSH_DEFINE_FUNCTION(name) \
  inline Tensor name(const Tensor& self, const Tensor& other) { return ops::name(self, other); }
RUSH_FORALL_BINARY_MATH(RUSH_DEFINE_FUNCTION)
RUSH_DEFINE_FUNCTION(logaddexp)
RUSH_DEFINE_FUNCTION(logaddexp2)
// The angle of the point (other, self), in radians, in [-pi, pi].
RUSH_DEFINE_FUNCTION(atan2)
// |self| with the sign of other.
RUSH_DEFINE_FUNCTION(copysign)
// 0 below 0, `other` at 0, 1 above.
RUSH_DEFINE_FUNCTION(heaviside)
// self * log(other), and 0 where self is 0.
RUSH_DEFINE_FUNCTION(xlogy)
#undef RUSH_DEFINE_FUNCTION
inline Tensor& gcd_(Tensor& self, const Tensor& other) { return ops::gcd_(self, other); }
inline Tensor& lcm_(Tensor& self, const Tensor& other) { return ops::lcm_(self, other); }
inline Tensor copysign(const Tensor& self, const Scalar& other) { return self.copysign(other); }
inline Tensor xlogy(const Tensor& self, const Scalar& other) { return self.xlogy(other); }
inline Tensor xlogy(const Scalar& self, const Tensor& other) {
  return ops::xlogy(detail::wrapped_number(self, other), other);
}
inline Tensor& xlogy_(Tensor& self, const Tensor& other) { return ops::xlogy_(self, other); }
inline Tensor& xlogy_(Tensor& self, const Scalar& other) { return self.xlogy_(other); }
/// self * log(1 + other), accurate near other = 0; 0 where self is 0, NaN where other is NaN.
inline Tensor special_xlog1py(const Tensor& self, const Tensor& other) { return ops::special_xlog1py(self, other); }

namespace kernels {
inline constinit PointwiseKernel pow{"pow"};
inline constinit ScalarKernel pow_scalar{"pow"};  // the exponent
#define RUSH_DECLARE_KERNEL(name) inline constinit PointwiseKernel name{#name};
RUSH_FORALL_BINARY_MATH(RUSH_DECLARE_KERNEL)
#undef RUSH_DECLARE_KERNEL
inline constinit PointwiseKernel atan2{"atan2"}, copysign{"copysign"}, heaviside{"heaviside"}, xlogy{"xlogy"};
inline constinit PointwiseKernel logaddexp{"logaddexp"}, logaddexp2{"logaddexp2"};
inline constinit PointwiseKernel special_xlog1py{"special_xlog1py"};
}  // namespace kernels

namespace native {
// The fronts that are templates. The others are in power.cpp.
template <class R>
void register_power_fronts(R& r) {
  r.native(ops::pow, binary<kernels::pow, Promotion::Common>);
  r.native(ops::pow_, binary_<kernels::pow, Promotion::Common>);
#define RUSH_REGISTER(name, promotion)                              \
  r.native(ops::name, binary<kernels::name, Promotion::promotion>); \
  r.native(ops::name##_, binary_<kernels::name, Promotion::promotion>);
#define RUSH_REGISTER_COMMON(name) RUSH_REGISTER(name, Common)
  RUSH_FORALL_BINARY_MATH(RUSH_REGISTER_COMMON)
  RUSH_REGISTER(atan2, Float)
  RUSH_REGISTER(copysign, Float)
  RUSH_REGISTER(xlogy, Float)
#undef RUSH_REGISTER_COMMON
#undef RUSH_REGISTER
  r.composite(ops::copysign_Scalar, with_scalar<ops::copysign>);
  r.composite(ops::xlogy_Scalar_Other, with_scalar<ops::xlogy>);
  r.composite(ops::xlogy_Scalar_Self, scalar_with<ops::xlogy>);
  r.native(ops::logaddexp, binary<kernels::logaddexp, Promotion::Common>);
  r.native(ops::logaddexp2, binary<kernels::logaddexp2, Promotion::Common>);
  r.native(ops::special_xlog1py, binary<kernels::special_xlog1py, Promotion::Float>);
}
}  // namespace native

}  // namespace rush
