// Element-wise operators on two tensors: arithmetic. They broadcast and promote.
#pragma once
#include "core/ops/pointwise.h"

namespace rush {

using BinaryOp = Op<Tensor(const Tensor&, const Tensor&)>;
using BinaryInplaceOp = Op<Tensor&(Tensor&, const Tensor&)>;

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

inline Tensor operator+(const Tensor& a, const Tensor& b) { return ops::add(a, b, 1); }
inline Tensor operator+(const Tensor& a, const Scalar& b) { return a.add(b); }
inline Tensor operator+(const Scalar& a, const Tensor& b) { return b.add(a); }
inline Tensor operator-(const Tensor& a, const Tensor& b) { return ops::sub(a, b, 1); }
inline Tensor operator-(const Tensor& a, const Scalar& b) { return a.sub(b); }
inline Tensor operator-(const Scalar& a, const Tensor& b) { return detail::wrapped_number(a).sub(b); }
inline Tensor operator*(const Tensor& a, const Tensor& b) { return ops::mul(a, b); }
inline Tensor operator*(const Tensor& a, const Scalar& b) { return a.mul(b); }
inline Tensor operator*(const Scalar& a, const Tensor& b) { return b.mul(a); }
inline Tensor operator/(const Tensor& a, const Tensor& b) { return ops::div(a, b); }
inline Tensor operator/(const Tensor& a, const Scalar& b) { return a.div(b); }
inline Tensor operator/(const Scalar& a, const Tensor& b) { return detail::wrapped_number(a).div(b); }

namespace kernels {
inline constinit Kernel<void(TensorIterator&, const Scalar&)> add{"add"};  // a + alpha * b
inline constinit PointwiseKernel mul{"mul"}, div{"div"};
}  // namespace kernels

}  // namespace rush
