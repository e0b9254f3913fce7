// Masks: where a tensor is not zero, and reading and writing the elements under a bool mask.
#pragma once
#include "core/dispatch/kernel.h"
#include "core/dispatch/op.h"
#include "core/iterator/tensor_iterator.h"

namespace rush {

namespace ops {
inline constinit Op<Tensor(const Tensor&)> nonzero{"aten::nonzero(Tensor self) -> Tensor", {Tag::DynamicOutputShape}};
inline constinit Op<std::vector<Tensor>(const Tensor&)> nonzero_numpy{"aten::nonzero_numpy(Tensor self) -> Tensor[]",
                                                                      {Tag::DynamicOutputShape}};
inline constinit Op<Tensor(const Tensor&)> argwhere{"aten::argwhere(Tensor self) -> Tensor", {Tag::DynamicOutputShape}};
inline constinit Op<std::vector<Tensor>(const Tensor&)> where_nonzero{"aten::where(Tensor condition) -> Tensor[]",
                                                                      {Tag::DynamicOutputShape}};
inline constinit Op<Tensor(const Tensor&, const Tensor&, const Scalar&)> masked_fill_Scalar{
    "aten::masked_fill.Scalar(Tensor self, Tensor mask, Scalar value) -> Tensor"};
inline constinit Op<Tensor(const Tensor&, const Tensor&, const Tensor&)> masked_fill{
    "aten::masked_fill.Tensor(Tensor self, Tensor mask, Tensor value) -> Tensor"};
inline constinit Op<Tensor&(Tensor&, const Tensor&, const Scalar&)> masked_fill__Scalar{
    "aten::masked_fill_.Scalar(Tensor(a!) self, Tensor mask, Scalar value) -> Tensor(a!)"};
inline constinit Op<Tensor&(Tensor&, const Tensor&, const Tensor&)> masked_fill_{
    "aten::masked_fill_.Tensor(Tensor(a!) self, Tensor mask, Tensor value) -> Tensor(a!)"};
inline constinit Op<Tensor(const Tensor&, const Tensor&)> masked_select{
    "aten::masked_select(Tensor self, Tensor mask) -> Tensor", {Tag::DynamicOutputShape}};
inline constinit Op<Tensor(const Tensor&, const Tensor&, const Tensor&)> masked_scatter{
    "aten::masked_scatter(Tensor self, Tensor mask, Tensor source) -> Tensor"};
inline constinit Op<Tensor&(Tensor&, const Tensor&, const Tensor&)> masked_scatter_{
    "aten::masked_scatter_(Tensor(a!) self, Tensor mask, Tensor source) -> Tensor(a!)"};
}  // namespace ops

/// The positions of all elements that are not zero, in row-major order, one a row: (n, dimensions), int64.
/// Throws NotImplementedError on the meta device, where nothing has a value.
inline Tensor nonzero(const Tensor& self) { return ops::nonzero(self); }
inline Tensor argwhere(const Tensor& self) { return ops::argwhere(self); }
/// As above, one tensor a dimension, as `index` takes them.
inline std::vector<Tensor> nonzero_numpy(const Tensor& self) { return ops::nonzero_numpy(self); }
inline std::vector<Tensor> where(const Tensor& condition) { return ops::where_nonzero(condition); }
/// `self` with `value` where the bool `mask` is true; they broadcast. Throws TypeError for another mask, ValueError for
/// a value with dimensions.
inline Tensor masked_fill(const Tensor& self, const Tensor& mask, const Scalar& value) {
  return ops::masked_fill_Scalar(self, mask, value);
}
inline Tensor masked_fill(const Tensor& self, const Tensor& mask, const Tensor& value) {
  return ops::masked_fill(self, mask, value);
}
/// The elements of `self` under the bool `mask`, in row-major order, in one dimension; they broadcast.
inline Tensor masked_select(const Tensor& self, const Tensor& mask) { return ops::masked_select(self, mask); }
/// `self` with its elements under `mask` replaced by those of `source` in order. Throws ValueError when it has too few.
inline Tensor masked_scatter(const Tensor& self, const Tensor& mask, const Tensor& source) {
  return ops::masked_scatter(self, mask, source);
}

namespace kernels {
// Operands: out, self, mask (bool), value. out = mask ? value : self.
inline constinit Kernel<void(TensorIterator&)> masked_fill{"masked_fill"};
// Allocates `out`, whose size depends on the data, and fills it. `self` and `mask` are row-major, of one shape.
inline constinit Kernel<void(const Tensor& self, Tensor& out)> nonzero{"nonzero"};
inline constinit Kernel<void(const Tensor& self, const Tensor& mask, Tensor& out)> masked_select{"masked_select"};
// All row-major. Throws ValueError, before it writes, when `source` has fewer elements than the mask has true ones.
inline constinit Kernel<void(const Tensor& self, const Tensor& mask, const Tensor& source)> masked_scatter{
    "masked_scatter"};
}  // namespace kernels

namespace native {
// Below autograd.
Tensor nonzero(const Tensor& self);
Tensor& masked_fill_(Tensor& self, const Tensor& mask, const Tensor& value);
}  // namespace native

}  // namespace rush
