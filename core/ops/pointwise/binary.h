// Element-wise operators on two tensors: arithmetic. They broadcast and promote.
#pragma once
#include "core/ops/pointwise/pointwise.h"

namespace rush {

namespace ops {
inline constinit Op<Tensor(const Tensor&, const Tensor&, const Scalar&)> add{
    "aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor"};
inline constinit Op<Tensor&(Tensor&, const Tensor&, const Scalar&)> add_{
    "aten::add_.Tensor(Tensor(a!) self, Tensor other, *, Scalar alpha=1) -> Tensor(a!)"};
inline constinit Op<Tensor(const Tensor&, const Tensor&, const Scalar&)> sub{
    "aten::sub.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor"};
inline constinit Op<Tensor&(Tensor&, const Tensor&, const Scalar&)> sub_{
    "aten::sub_.Tensor(Tensor(a!) self, Tensor other, *, Scalar alpha=1) -> Tensor(a!)"};
inline constinit BinaryOp mul{"aten::mul.Tensor(Tensor self, Tensor other) -> Tensor"};
inline constinit BinaryInplaceOp mul_{"aten::mul_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)"};
inline constinit BinaryOp div{"aten::div.Tensor(Tensor self, Tensor other) -> Tensor"};
inline constinit BinaryInplaceOp div_{"aten::div_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)"};
inline constinit Op<Tensor(const Tensor&, const Tensor&, std::optional<std::string_view>)> div_mode{
    "aten::div.Tensor_mode(Tensor self, Tensor other, *, str? rounding_mode) -> Tensor"};
inline constinit Op<Tensor&(Tensor&, const Tensor&, std::optional<std::string_view>)> div_mode_{
    "aten::div_.Tensor_mode(Tensor(a!) self, Tensor other, *, str? rounding_mode) -> Tensor(a!)"};
inline constinit BinaryOp true_divide{"aten::true_divide.Tensor(Tensor self, Tensor other) -> Tensor"};
inline constinit BinaryInplaceOp true_divide_{"aten::true_divide_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)"};
inline constinit BinaryOp floor_divide{"aten::floor_divide(Tensor self, Tensor other) -> Tensor"};
inline constinit BinaryInplaceOp floor_divide_{
    "aten::floor_divide_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)"};
inline constinit BinaryOp fmod{"aten::fmod.Tensor(Tensor self, Tensor other) -> Tensor"};
inline constinit BinaryInplaceOp fmod_{"aten::fmod_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)"};
inline constinit BinaryOp remainder{"aten::remainder.Tensor(Tensor self, Tensor other) -> Tensor"};
inline constinit BinaryInplaceOp remainder_{"aten::remainder_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)"};
inline constinit Op<Tensor(const Tensor&, const Tensor&, const Scalar&)> rsub{
    "aten::rsub.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor"};

// Of a tensor and a number. The number is made a tensor of no dimensions, so these need neither kernel nor derivative.
inline constinit Op<Tensor(const Tensor&, const Scalar&, const Scalar&)> add_Scalar{
    "aten::add.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor"};
inline constinit Op<Tensor(const Tensor&, const Scalar&, const Scalar&)> sub_Scalar{
    "aten::sub.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor"};
inline constinit Op<Tensor(const Tensor&, const Scalar&, const Scalar&)> rsub_Scalar{
    "aten::rsub.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor"};
inline constinit ScalarOp mul_Scalar{"aten::mul.Scalar(Tensor self, Scalar other) -> Tensor"};
inline constinit ScalarOp div_Scalar{"aten::div.Scalar(Tensor self, Scalar other) -> Tensor"};
inline constinit Op<Tensor(const Tensor&, const Scalar&, std::optional<std::string_view>)> div_Scalar_mode{
    "aten::div.Scalar_mode(Tensor self, Scalar other, *, str? rounding_mode) -> Tensor"};
inline constinit ScalarOp true_divide_Scalar{"aten::true_divide.Scalar(Tensor self, Scalar other) -> Tensor"};
inline constinit ScalarOp floor_divide_Scalar{"aten::floor_divide.Scalar(Tensor self, Scalar other) -> Tensor"};
inline constinit ScalarOp fmod_Scalar{"aten::fmod.Scalar(Tensor self, Scalar other) -> Tensor"};
inline constinit ScalarOp remainder_Scalar{"aten::remainder.Scalar(Tensor self, Scalar other) -> Tensor"};
inline constinit Op<Tensor(const Scalar&, const Tensor&)> remainder_Scalar_Tensor{
    "aten::remainder.Scalar_Tensor(Scalar self, Tensor other) -> Tensor"};
}  // namespace ops

// self + alpha * other. Throws ValueError when the shapes do not broadcast.
inline Tensor add(const Tensor& self, const Tensor& other, const Scalar& alpha = 1) {
  return ops::add(self, other, alpha);
}
inline Tensor add(const Tensor& self, const Scalar& other, const Scalar& alpha = 1) { return self.add(other, alpha); }
// self - alpha * other.
inline Tensor sub(const Tensor& self, const Tensor& other, const Scalar& alpha = 1) {
  return ops::sub(self, other, alpha);
}
inline Tensor sub(const Tensor& self, const Scalar& other, const Scalar& alpha = 1) { return self.sub(other, alpha); }
// self * other.
inline Tensor mul(const Tensor& self, const Tensor& other) { return ops::mul(self, other); }
inline Tensor mul(const Tensor& self, const Scalar& other) { return self.mul(other); }
// self / other, always floating point: integers are divided as the default dtype.
inline Tensor div(const Tensor& self, const Tensor& other) { return ops::div(self, other); }
inline Tensor div(const Tensor& self, const Scalar& other) { return self.div(other); }
// self / other rounded: mode "trunc" towards 0 as C divides integers, "floor" downwards as Python does, none not at
// all. Rounded division keeps integers and throws ValueError when one is divided by 0.
inline Tensor div(const Tensor& self, const Tensor& other, std::optional<std::string_view> rounding_mode) {
  return ops::div_mode(self, other, rounding_mode);
}
inline Tensor div(const Tensor& self, const Scalar& other, std::optional<std::string_view> rounding_mode) {
  return self.div(other, rounding_mode);
}
inline Tensor floor_divide(const Tensor& self, const Tensor& other) { return ops::floor_divide(self, other); }
inline Tensor floor_divide(const Tensor& self, const Scalar& other) { return self.floor_divide(other); }
// Other names of div, mul and sub.
inline Tensor true_divide(const Tensor& self, const Tensor& other) { return ops::div(self, other); }
inline Tensor true_divide(const Tensor& self, const Scalar& other) { return self.div(other); }
inline Tensor divide(const Tensor& self, const Tensor& other) { return ops::div(self, other); }
inline Tensor multiply(const Tensor& self, const Tensor& other) { return ops::mul(self, other); }
inline Tensor subtract(const Tensor& self, const Tensor& other, const Scalar& alpha = 1) {
  return ops::sub(self, other, alpha);
}
// The remainder of the division: fmod has the sign of self, as in C, and remainder that of other, as in Python.
// Integers divided by 0 throw ValueError.
inline Tensor fmod(const Tensor& self, const Tensor& other) { return ops::fmod(self, other); }
inline Tensor fmod(const Tensor& self, const Scalar& other) { return self.fmod(other); }
inline Tensor remainder(const Tensor& self, const Tensor& other) { return ops::remainder(self, other); }
inline Tensor remainder(const Tensor& self, const Scalar& other) { return self.remainder(other); }
inline Tensor remainder(const Scalar& self, const Tensor& other) {
  return ops::remainder(detail::wrapped_number(self, other), other);
}
// other - alpha * self.
inline Tensor rsub(const Tensor& self, const Tensor& other, const Scalar& alpha = 1) {
  return ops::rsub(self, other, alpha);
}
inline Tensor rsub(const Tensor& self, const Scalar& other, const Scalar& alpha = 1) {
  return ops::rsub(self, detail::wrapped_number(other, self), alpha);
}
// The same as add, sub, mul, div and remainder.
inline Tensor operator+(const Tensor& a, const Tensor& b) { return ops::add(a, b, 1); }
inline Tensor operator+(const Tensor& a, const Scalar& b) { return a.add(b); }
inline Tensor operator+(const Scalar& a, const Tensor& b) { return b.add(a); }
inline Tensor operator-(const Tensor& a, const Tensor& b) { return ops::sub(a, b, 1); }
inline Tensor operator-(const Tensor& a, const Scalar& b) { return a.sub(b); }
inline Tensor operator-(const Scalar& a, const Tensor& b) { return detail::wrapped_number(a, b).sub(b); }
inline Tensor operator*(const Tensor& a, const Tensor& b) { return ops::mul(a, b); }
inline Tensor operator*(const Tensor& a, const Scalar& b) { return a.mul(b); }
inline Tensor operator*(const Scalar& a, const Tensor& b) { return b.mul(a); }
inline Tensor operator/(const Tensor& a, const Tensor& b) { return ops::div(a, b); }
inline Tensor operator/(const Tensor& a, const Scalar& b) { return a.div(b); }
inline Tensor operator/(const Scalar& a, const Tensor& b) { return detail::wrapped_number(a, b).div(b); }
inline Tensor operator%(const Tensor& a, const Tensor& b) { return ops::remainder(a, b); }
inline Tensor operator%(const Tensor& a, const Scalar& b) { return a.remainder(b); }
inline Tensor operator%(const Scalar& a, const Tensor& b) { return remainder(a, b); }

namespace kernels {
inline constinit Kernel<void(TensorIterator&, const Scalar&)> add{"add"};  // a + alpha * b
inline constinit PointwiseKernel mul{"mul"}, div{"div"}, div_trunc{"div"}, div_floor{"floor_divide"};
inline constinit PointwiseKernel fmod{"fmod"}, remainder{"remainder"};
}  // namespace kernels

namespace native {
// The fronts that are templates. The others are in binary.cpp.
template <class R>
void register_binary_fronts(R& r) {
  r.native(ops::mul, binary<kernels::mul, Promotion::Common>);
  r.native(ops::mul_, binary_<kernels::mul, Promotion::Common>);
  r.native(ops::div, binary<kernels::div, Promotion::Float>);
  r.native(ops::div_, binary_<kernels::div, Promotion::Float>);
  r.composite(ops::true_divide, same_as<ops::div>);
  r.composite(ops::true_divide_, same_as<ops::div_>);
  r.native(ops::floor_divide, binary<kernels::div_floor, Promotion::Common>);
  r.native(ops::floor_divide_, binary_<kernels::div_floor, Promotion::Common>);
  r.native(ops::fmod, binary<kernels::fmod, Promotion::Common>);
  r.native(ops::fmod_, binary_<kernels::fmod, Promotion::Common>);
  r.native(ops::remainder, binary<kernels::remainder, Promotion::Common>);
  r.native(ops::remainder_, binary_<kernels::remainder, Promotion::Common>);
  r.composite(ops::mul_Scalar, with_scalar<ops::mul>);
  r.composite(ops::div_Scalar, with_scalar<ops::div>);
  r.composite(ops::true_divide_Scalar, with_scalar<ops::div>);
  r.composite(ops::floor_divide_Scalar, with_scalar<ops::floor_divide>);
  r.composite(ops::fmod_Scalar, with_scalar<ops::fmod>);
  r.composite(ops::remainder_Scalar, with_scalar<ops::remainder>);
  r.composite(ops::remainder_Scalar_Tensor, scalar_with<ops::remainder>);
}
}  // namespace native

}  // namespace rush
