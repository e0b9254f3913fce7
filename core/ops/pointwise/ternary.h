// Operators on three tensors, or a tensor between two bounds: where, clamp, lerp, addcmul, addcdiv.
#pragma once
#include "core/ops/pointwise/pointwise.h"

namespace rush {

using OptionalScalar = std::optional<Scalar>;
using OptionalTensor = std::optional<Tensor>;

namespace ops {
inline constinit Op<Tensor(const Tensor&, const Tensor&, const Tensor&)> where{
    "aten::where.self(Tensor condition, Tensor self, Tensor other) -> Tensor"};
inline constinit Op<Tensor(const Tensor&, const Scalar&, const Tensor&)> where_ScalarSelf{
    "aten::where.ScalarSelf(Tensor condition, Scalar self, Tensor other) -> Tensor"};
inline constinit Op<Tensor(const Tensor&, const Tensor&, const Scalar&)> where_ScalarOther{
    "aten::where.ScalarOther(Tensor condition, Tensor self, Scalar other) -> Tensor"};
inline constinit Op<Tensor(const Tensor&, const Scalar&, const Scalar&)> where_Scalar{
    "aten::where.Scalar(Tensor condition, Scalar self, Scalar other) -> Tensor"};

using AddcOp = Op<Tensor(const Tensor&, const Tensor&, const Tensor&, const Scalar&)>;
using AddcInplaceOp = Op<Tensor&(Tensor&, const Tensor&, const Tensor&, const Scalar&)>;
inline constinit AddcOp addcmul{
    "aten::addcmul(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor"};
inline constinit AddcInplaceOp addcmul_{
    "aten::addcmul_(Tensor(a!) self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor(a!)"};
inline constinit AddcOp addcdiv{
    "aten::addcdiv(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor"};
inline constinit AddcInplaceOp addcdiv_{
    "aten::addcdiv_(Tensor(a!) self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor(a!)"};
inline constinit Op<Tensor(const Tensor&, const Tensor&, const Tensor&)> lerp{
    "aten::lerp.Tensor(Tensor self, Tensor end, Tensor weight) -> Tensor"};
inline constinit Op<Tensor&(Tensor&, const Tensor&, const Tensor&)> lerp_{
    "aten::lerp_.Tensor(Tensor(a!) self, Tensor end, Tensor weight) -> Tensor(a!)"};
inline constinit Op<Tensor(const Tensor&, const Tensor&, const Scalar&)> lerp_scalar{
    "aten::lerp.Scalar(Tensor self, Tensor end, Scalar weight) -> Tensor"};
inline constinit Op<Tensor&(Tensor&, const Tensor&, const Scalar&)> lerp_scalar_{
    "aten::lerp_.Scalar(Tensor(a!) self, Tensor end, Scalar weight) -> Tensor(a!)"};

inline constinit Op<Tensor(const Tensor&, const OptionalScalar&, const OptionalScalar&)> clamp{
    "aten::clamp(Tensor self, Scalar? min=None, Scalar? max=None) -> Tensor"};
inline constinit Op<Tensor&(Tensor&, const OptionalScalar&, const OptionalScalar&)> clamp_{
    "aten::clamp_(Tensor(a!) self, Scalar? min=None, Scalar? max=None) -> Tensor(a!)"};
inline constinit Op<Tensor(const Tensor&, const OptionalTensor&, const OptionalTensor&)> clamp_Tensor{
    "aten::clamp.Tensor(Tensor self, Tensor? min=None, Tensor? max=None) -> Tensor"};
inline constinit Op<Tensor&(Tensor&, const OptionalTensor&, const OptionalTensor&)> clamp_Tensor_{
    "aten::clamp_.Tensor(Tensor(a!) self, Tensor? min=None, Tensor? max=None) -> Tensor(a!)"};
inline constinit ScalarOp clamp_min{"aten::clamp_min(Tensor self, Scalar min) -> Tensor"};
inline constinit ScalarOp clamp_max{"aten::clamp_max(Tensor self, Scalar max) -> Tensor"};
inline constinit ScalarInplaceOp clamp_min_{"aten::clamp_min_(Tensor(a!) self, Scalar min) -> Tensor(a!)"};
inline constinit ScalarInplaceOp clamp_max_{"aten::clamp_max_(Tensor(a!) self, Scalar max) -> Tensor(a!)"};
inline constinit BinaryOp clamp_min_Tensor{"aten::clamp_min.Tensor(Tensor self, Tensor min) -> Tensor"};
inline constinit BinaryOp clamp_max_Tensor{"aten::clamp_max.Tensor(Tensor self, Tensor max) -> Tensor"};
inline constinit BinaryInplaceOp clamp_min_Tensor_{
    "aten::clamp_min_.Tensor(Tensor(a!) self, Tensor min) -> Tensor(a!)"};
inline constinit BinaryInplaceOp clamp_max_Tensor_{
    "aten::clamp_max_.Tensor(Tensor(a!) self, Tensor max) -> Tensor(a!)"};
}  // namespace ops

/// self where the condition is true, other elsewhere. Throws TypeError unless the condition is bool or uint8.
inline Tensor where(const Tensor& condition, const Tensor& self, const Tensor& other) {
  return ops::where(condition, self, other);
}
inline Tensor where(const Tensor& condition, const Scalar& self, const Tensor& other) {
  return ops::where_ScalarSelf(condition, self, other);
}
inline Tensor where(const Tensor& condition, const Tensor& self, const Scalar& other) {
  return ops::where_ScalarOther(condition, self, other);
}
inline Tensor where(const Tensor& condition, const Scalar& self, const Scalar& other) {
  return ops::where_Scalar(condition, self, other);
}
/// self + value * tensor1 * tensor2.
inline Tensor addcmul(const Tensor& self, const Tensor& tensor1, const Tensor& tensor2, const Scalar& value = 1) {
  return ops::addcmul(self, tensor1, tensor2, value);
}
/// self + value * tensor1 / tensor2. Throws TypeError when all are integers.
inline Tensor addcdiv(const Tensor& self, const Tensor& tensor1, const Tensor& tensor2, const Scalar& value = 1) {
  return ops::addcdiv(self, tensor1, tensor2, value);
}
/// self + weight * (end - self). Throws TypeError when the dtypes differ.
inline Tensor lerp(const Tensor& self, const Tensor& end, const Tensor& weight) { return ops::lerp(self, end, weight); }
inline Tensor lerp(const Tensor& self, const Tensor& end, const Scalar& weight) {
  return ops::lerp_scalar(self, end, weight);
}
/// Each element held within [min, max]; max where min is the larger. NaN stays NaN. Throws ValueError when neither is
/// given.
inline Tensor clamp(const Tensor& self, const OptionalScalar& min, const OptionalScalar& max = std::nullopt) {
  return ops::clamp(self, min, max);
}
inline Tensor clamp(const Tensor& self, const OptionalTensor& min = {}, const OptionalTensor& max = {}) {
  return ops::clamp_Tensor(self, min, max);
}
inline Tensor& clamp_(Tensor& self, const OptionalScalar& min, const OptionalScalar& max = std::nullopt) {
  return ops::clamp_(self, min, max);
}
inline Tensor& clamp_(Tensor& self, const OptionalTensor& min = {}, const OptionalTensor& max = {}) {
  return ops::clamp_Tensor_(self, min, max);
}
inline Tensor clip(const Tensor& self, const OptionalScalar& min, const OptionalScalar& max = std::nullopt) {
  return ops::clamp(self, min, max);
}
inline Tensor clip(const Tensor& self, const OptionalTensor& min = {}, const OptionalTensor& max = {}) {
  return ops::clamp_Tensor(self, min, max);
}
inline Tensor& clip_(Tensor& self, const OptionalScalar& min, const OptionalScalar& max = std::nullopt) {
  return ops::clamp_(self, min, max);
}
inline Tensor& clip_(Tensor& self, const OptionalTensor& min = {}, const OptionalTensor& max = {}) {
  return ops::clamp_Tensor_(self, min, max);
}
inline Tensor clamp_min(const Tensor& self, const Scalar& min) { return ops::clamp_min(self, min); }
inline Tensor clamp_min(const Tensor& self, const Tensor& min) { return ops::clamp_min_Tensor(self, min); }
inline Tensor& clamp_min_(Tensor& self, const Scalar& min) { return ops::clamp_min_(self, min); }
inline Tensor& clamp_min_(Tensor& self, const Tensor& min) { return ops::clamp_min_Tensor_(self, min); }
inline Tensor clamp_max(const Tensor& self, const Scalar& max) { return ops::clamp_max(self, max); }
inline Tensor clamp_max(const Tensor& self, const Tensor& max) { return ops::clamp_max_Tensor(self, max); }
inline Tensor& clamp_max_(Tensor& self, const Scalar& max) { return ops::clamp_max_(self, max); }
inline Tensor& clamp_max_(Tensor& self, const Tensor& max) { return ops::clamp_max_Tensor_(self, max); }

namespace kernels {
inline constinit PointwiseKernel where{"where"};  // the condition is operand 1, of bool
inline constinit ScalarKernel addcmul{"addcmul"}, addcdiv{"addcdiv"}, lerp_scalar{"lerp"};
inline constinit PointwiseKernel lerp{"lerp"};
inline constinit PointwiseKernel clamp{"clamp"};  // operands self, min, max
// A bound that is missing is the dtype's own.
inline constinit Kernel<void(TensorIterator&, const OptionalScalar& min, const OptionalScalar& max)> clamp_scalar{
    "clamp"};
}  // namespace kernels

}  // namespace rush
