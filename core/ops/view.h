// Views: other sizes and strides over the same memory.
#pragma once
#include "core/dispatch/op.h"
#include "core/tensor.h"

namespace rush {

namespace ops {
inline constinit Op<Tensor(const Tensor&, IntArrayRef, IntArrayRef, std::optional<int64_t>)> as_strided{
    "aten::as_strided(Tensor(a) self, SymInt[] size, SymInt[] stride, SymInt? storage_offset=None) -> Tensor(a)"};
inline constinit Op<Tensor(const Tensor&, IntArrayRef)> view{"aten::view(Tensor(a) self, SymInt[] size) -> Tensor(a)"};
inline constinit Op<Tensor(const Tensor&, IntArrayRef)> reshape{
    "aten::reshape(Tensor(a) self, SymInt[] shape) -> Tensor(a)"};
inline constinit Op<Tensor(const Tensor&, IntArrayRef, bool)> expand{
    "aten::expand(Tensor(a) self, SymInt[] size, *, bool implicit=False) -> Tensor(a)"};
inline constinit Op<Tensor(const Tensor&, int64_t, int64_t)> select{
    "aten::select.int(Tensor(a) self, int dim, SymInt index) -> Tensor(a)"};
inline constinit Op<Tensor(const Tensor&, int64_t, int64_t)> transpose{
    "aten::transpose.int(Tensor(a) self, int dim0, int dim1) -> Tensor(a)"};
inline constinit Op<Tensor(const Tensor&)> view_as_real{"aten::view_as_real(Tensor(a) self) -> Tensor(a)"};
inline constinit Op<Tensor(const Tensor&)> real{"aten::real(Tensor(a) self) -> Tensor(a)"};
}  // namespace ops

// A view with any geometry within the storage; the offset defaults to self's. Throws ValueError outside the storage.
inline Tensor as_strided(const Tensor& self, IntArrayRef size, IntArrayRef stride,
                         std::optional<int64_t> storage_offset = std::nullopt) {
  return ops::as_strided(self, size, stride, storage_offset);
}
// A view of the same elements in another shape; one size may be -1. A copy where no view can have it.
inline Tensor reshape(const Tensor& self, IntArrayRef shape) { return ops::reshape(self, shape); }
// Dimensions of size one repeated to `size`, without a copy; -1 keeps a size. New dimensions come first.
inline Tensor expand(const Tensor& self, IntArrayRef size) { return ops::expand(self, size, false); }
// The slice at `index` of `dim`, which is dropped.
inline Tensor select(const Tensor& self, int64_t dim, int64_t index) { return ops::select(self, dim, index); }
// The two dimensions swapped.
inline Tensor transpose(const Tensor& self, int64_t dim0, int64_t dim1) { return ops::transpose(self, dim0, dim1); }
// A complex tensor as pairs of real numbers: (..., 2). Throws TypeError on a real one.
inline Tensor view_as_real(const Tensor& self) { return ops::view_as_real(self); }
// The real parts, as a view; self when it is real.
inline Tensor real(const Tensor& self) { return ops::real(self); }

// Strides with which elements laid out as (sizes, strides) can be seen in `shape`; nothing when they cannot.
std::optional<DimVector> view_strides(IntArrayRef sizes, IntArrayRef strides, IntArrayRef shape);
// `shape` with its -1 replaced. Throws ValueError naming `op` when it cannot hold `numel` elements.
DimVector infer_size(IntArrayRef shape, int64_t numel, const char* op);

namespace native {
// Below autograd: `self` broadcast to `sizes`, which it must broadcast to.
Tensor expand_as_strided(const Tensor& self, IntArrayRef sizes);
}  // namespace native

}  // namespace rush
