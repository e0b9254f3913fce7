// Views: other sizes and strides over the same memory. Their fronts stand in three files: view.cpp (shapes), dims.cpp
// (the order and number of dimensions) and split.cpp (parts of a tensor).
#pragma once
#include "core/dispatch/kernel.h"
#include "core/dispatch/op.h"
#include "core/tensor.h"

namespace rush {

using ViewOp = Op<Tensor(const Tensor&)>;
using ViewDimOp = Op<Tensor(const Tensor&, int64_t)>;
using ViewDimsOp = Op<Tensor(const Tensor&, IntArrayRef)>;
using ViewTwoDimsOp = Op<Tensor(const Tensor&, int64_t, int64_t)>;
using ViewLikeOp = Op<Tensor(const Tensor&, const Tensor&)>;
using MoveDimsOp = Op<Tensor(const Tensor&, IntArrayRef, IntArrayRef)>;
using SplitOp = Op<std::vector<Tensor>(const Tensor&, int64_t, int64_t)>;
using SplitSizesOp = Op<std::vector<Tensor>(const Tensor&, IntArrayRef, int64_t)>;

namespace ops {
// ---- shapes ----
inline constinit Op<Tensor(const Tensor&, IntArrayRef, IntArrayRef, std::optional<int64_t>)> as_strided{
    "aten::as_strided(Tensor(a) self, SymInt[] size, SymInt[] stride, SymInt? storage_offset=None) -> Tensor(a)"};
inline constinit ViewDimsOp view{"aten::view(Tensor(a) self, SymInt[] size) -> Tensor(a)"};
inline constinit Op<Tensor(const Tensor&, ScalarType)> view_dtype{
    "aten::view.dtype(Tensor(a) self, ScalarType dtype) -> Tensor(a)"};
inline constinit ViewLikeOp view_as{"aten::view_as(Tensor(a) self, Tensor other) -> Tensor(a)"};
inline constinit ViewDimsOp reshape{"aten::reshape(Tensor(a) self, SymInt[] shape) -> Tensor(a)"};
inline constinit ViewLikeOp reshape_as{"aten::reshape_as(Tensor(a) self, Tensor other) -> Tensor(a)"};
inline constinit ViewTwoDimsOp flatten{
    "aten::flatten.using_ints(Tensor(a) self, int start_dim=0, int end_dim=-1) -> Tensor(a)"};
inline constinit ViewOp ravel{"aten::ravel(Tensor(a) self) -> Tensor(a)"};
inline constinit Op<Tensor(const Tensor&, int64_t, IntArrayRef)> unflatten{
    "aten::unflatten.int(Tensor(a) self, int dim, SymInt[] sizes) -> Tensor(a)"};
inline constinit Op<Tensor(const Tensor&, IntArrayRef, bool)> expand{
    "aten::expand(Tensor(a) self, SymInt[] size, *, bool implicit=False) -> Tensor(a)"};
inline constinit ViewLikeOp expand_as{"aten::expand_as(Tensor(a) self, Tensor other) -> Tensor(a)"};
inline constinit ViewDimsOp broadcast_to{"aten::broadcast_to(Tensor(a) self, SymInt[] size) -> Tensor(a)"};
inline constinit ViewOp view_as_real{"aten::view_as_real(Tensor(a) self) -> Tensor(a)"};
inline constinit ViewOp view_as_complex{"aten::view_as_complex(Tensor(a) self) -> Tensor(a)"};
inline constinit ViewOp real{"aten::real(Tensor(a) self) -> Tensor(a)"};
inline constinit ViewOp alias{"aten::alias(Tensor(a) self) -> Tensor(a)"};
inline constinit ViewOp detach{"aten::detach(Tensor(a) self) -> Tensor(a)"};

// ---- the order and number of dimensions ----
inline constinit ViewTwoDimsOp transpose{"aten::transpose.int(Tensor(a) self, int dim0, int dim1) -> Tensor(a)"};
inline constinit ViewTwoDimsOp swapaxes{"aten::swapaxes(Tensor(a) self, int axis0, int axis1) -> Tensor(a)"};
inline constinit ViewTwoDimsOp swapdims{"aten::swapdims(Tensor(a) self, int dim0, int dim1) -> Tensor(a)"};
inline constinit ViewDimsOp permute{"aten::permute(Tensor(a) self, int[] dims) -> Tensor(a)"};
inline constinit MoveDimsOp movedim{
    "aten::movedim.intlist(Tensor(a) self, int[] source, int[] destination) -> Tensor(a)"};
inline constinit ViewTwoDimsOp movedim_int{
    "aten::movedim.int(Tensor(a) self, int source, int destination) -> Tensor(a)"};
inline constinit MoveDimsOp moveaxis{
    "aten::moveaxis.intlist(Tensor(a) self, int[] source, int[] destination) -> Tensor(a)"};
inline constinit ViewTwoDimsOp moveaxis_int{
    "aten::moveaxis.int(Tensor(a) self, int source, int destination) -> Tensor(a)"};
inline constinit ViewOp t{"aten::t(Tensor(a) self) -> Tensor(a)"};
inline constinit ViewOp mT{"aten::mT(Tensor(a) self) -> Tensor(a)"};
inline constinit ViewOp numpy_T{"aten::numpy_T(Tensor(a) self) -> Tensor(a)"};
inline constinit ViewOp squeeze{"aten::squeeze(Tensor(a) self) -> Tensor(a)"};
inline constinit ViewDimOp squeeze_dim{"aten::squeeze.dim(Tensor(a) self, int dim) -> Tensor(a)"};
inline constinit ViewDimsOp squeeze_dims{"aten::squeeze.dims(Tensor(a) self, int[] dim) -> Tensor(a)"};
inline constinit ViewDimOp unsqueeze{"aten::unsqueeze(Tensor(a) self, int dim) -> Tensor(a)"};
inline constinit ViewOp atleast_1d{"aten::atleast_1d(Tensor self) -> Tensor"};
inline constinit ViewOp atleast_2d{"aten::atleast_2d(Tensor self) -> Tensor"};
inline constinit ViewOp atleast_3d{"aten::atleast_3d(Tensor self) -> Tensor"};

// ---- parts ----
inline constinit ViewTwoDimsOp select{"aten::select.int(Tensor(a) self, int dim, SymInt index) -> Tensor(a)"};
inline constinit Op<Tensor(const Tensor&, int64_t, std::optional<int64_t>, std::optional<int64_t>, int64_t)> slice{
    "aten::slice.Tensor(Tensor(a) self, int dim=0, SymInt? start=None, SymInt? end=None, SymInt step=1) -> Tensor(a)"};
inline constinit Op<Tensor(const Tensor&, int64_t, int64_t, int64_t)> narrow{
    "aten::narrow(Tensor(a) self, int dim, SymInt start, SymInt length) -> Tensor(a)"};
inline constinit Op<Tensor(const Tensor&, int64_t, const Tensor&, int64_t)> narrow_Tensor{
    "aten::narrow.Tensor(Tensor(a) self, int dim, Tensor start, SymInt length) -> Tensor(a)"};
inline constinit Op<Tensor(const Tensor&, int64_t, int64_t, int64_t)> diagonal{
    "aten::diagonal(Tensor(a) self, int offset=0, int dim1=0, int dim2=1) -> Tensor(a)"};
inline constinit Op<Tensor(const Tensor&, int64_t, int64_t, int64_t)> unfold{
    "aten::unfold(Tensor(a) self, int dimension, int size, int step) -> Tensor(a)"};
inline constinit SplitOp split{"aten::split.Tensor(Tensor(a -> *) self, SymInt split_size, int dim=0) -> Tensor(a)[]"};
inline constinit SplitSizesOp split_sizes{
    "aten::split.sizes(Tensor(a -> *) self, SymInt[] split_size, int dim=0) -> Tensor(a)[]"};
inline constinit SplitSizesOp split_with_sizes{
    "aten::split_with_sizes(Tensor(a -> *) self, SymInt[] split_sizes, int dim=0) -> Tensor(a)[]"};
inline constinit SplitOp chunk{"aten::chunk(Tensor(a -> *) self, int chunks, int dim=0) -> Tensor(a)[]"};
inline constinit SplitOp tensor_split{
    "aten::tensor_split.sections(Tensor(a -> *) self, SymInt sections, int dim=0) -> Tensor(a)[]", {Tag::AnyDevice}};
inline constinit SplitSizesOp tensor_split_indices{
    "aten::tensor_split.indices(Tensor(a -> *) self, SymInt[] indices, int dim=0) -> Tensor(a)[]", {Tag::AnyDevice}};
inline constinit Op<std::vector<Tensor>(const Tensor&, const Tensor&, int64_t)> tensor_split_Tensor{
    "aten::tensor_split.tensor_indices_or_sections(Tensor(a -> *) self, Tensor tensor_indices_or_sections, int dim=0) "
    "-> Tensor(a)[]",
    {Tag::AnyDevice}};
inline constinit Op<std::vector<Tensor>(const Tensor&, int64_t)> unbind{
    "aten::unbind.int(Tensor(a -> *) self, int dim=0) -> Tensor(a)[]"};

// ---- gradients of parts: zeros of the whole with the part's gradient at its place ----
inline constinit Op<Tensor(const Tensor&, IntArrayRef, int64_t, int64_t)> select_backward{
    "aten::select_backward(Tensor grad_output, SymInt[] input_sizes, int dim, SymInt index) -> Tensor"};
inline constinit Op<Tensor(const Tensor&, IntArrayRef, int64_t, int64_t, int64_t, int64_t)> slice_backward{
    "aten::slice_backward(Tensor grad_output, SymInt[] input_sizes, int dim, SymInt start, SymInt end, SymInt step) -> "
    "Tensor"};
inline constinit Op<Tensor(const Tensor&, IntArrayRef, int64_t, int64_t, int64_t)> diagonal_backward{
    "aten::diagonal_backward(Tensor grad_output, SymInt[] input_sizes, int offset, int dim1, int dim2) -> Tensor"};
inline constinit Op<Tensor(const Tensor&, IntArrayRef, int64_t, int64_t, int64_t)> unfold_backward{
    "aten::unfold_backward(Tensor grad_in, SymInt[] input_sizes, int dim, int size, int step) -> Tensor"};
/// The transpose of as_strided: a tensor of `numel` elements where element offset + sum_d i_d stride_d is the sum of
/// all values[i] that fall on it.
inline constinit Op<Tensor(const Tensor&, IntArrayRef, int64_t, int64_t)> strided_sum{
    "rush::strided_sum(Tensor values, SymInt[] stride, SymInt offset, SymInt numel) -> Tensor"};
}  // namespace ops

// ---- shapes ----

/// A view with any geometry within the storage; the offset defaults to self's. Throws ValueError outside the storage.
inline Tensor as_strided(const Tensor& self, IntArrayRef size, IntArrayRef stride,
                         std::optional<int64_t> storage_offset = std::nullopt) {
  return ops::as_strided(self, size, stride, storage_offset);
}
inline const Tensor& as_strided_(const Tensor& self, IntArrayRef size, IntArrayRef stride,
                                 std::optional<int64_t> storage_offset = std::nullopt) {
  return self.as_strided_(size, stride, storage_offset);
}
/// A view of the same elements in another shape; one size may be -1. A copy where no view can have it.
inline Tensor reshape(const Tensor& self, IntArrayRef shape) { return ops::reshape(self, shape); }
/// Dimensions start_dim to end_dim, both included, as one. A copy where no view can have it.
inline Tensor flatten(const Tensor& self, int64_t start_dim = 0, int64_t end_dim = -1) {
  return ops::flatten(self, start_dim, end_dim);
}
/// All elements in one dimension.
inline Tensor ravel(const Tensor& self) { return ops::ravel(self); }
/// Dimension `dim` as several of the given sizes, one of which may be -1.
inline Tensor unflatten(const Tensor& self, int64_t dim, IntArrayRef sizes) { return ops::unflatten(self, dim, sizes); }
/// Dimensions of size one repeated to `size`, without a copy; -1 keeps a size. New dimensions come first.
inline Tensor expand(const Tensor& self, IntArrayRef size) { return ops::expand(self, size, false); }
inline Tensor broadcast_to(const Tensor& self, IntArrayRef size) { return ops::broadcast_to(self, size); }
/// A complex tensor as pairs of real numbers: (..., 2). Throws TypeError on a real one.
inline Tensor view_as_real(const Tensor& self) { return ops::view_as_real(self); }
/// Pairs of real numbers (..., 2), side by side in memory, as a complex tensor (...).
inline Tensor view_as_complex(const Tensor& self) { return ops::view_as_complex(self); }
/// The real parts, as a view; self when it is real.
inline Tensor real(const Tensor& self) { return ops::real(self); }
/// The same memory, outside the graph.
inline Tensor detach(const Tensor& self) { return self.detach(); }
inline Tensor& detach_(Tensor& self) { return self.detach_(); }

// ---- the order and number of dimensions ----

/// The two dimensions swapped; swapaxes and swapdims are its NumPy names.
inline Tensor transpose(const Tensor& self, int64_t dim0, int64_t dim1) { return ops::transpose(self, dim0, dim1); }
inline Tensor swapaxes(const Tensor& self, int64_t axis0, int64_t axis1) { return ops::swapaxes(self, axis0, axis1); }
inline Tensor swapdims(const Tensor& self, int64_t dim0, int64_t dim1) { return ops::swapdims(self, dim0, dim1); }
/// Dimension i of the result is dimension dims[i] of self. Throws ValueError unless `dims` names each once.
inline Tensor permute(const Tensor& self, IntArrayRef dims) { return ops::permute(self, dims); }
/// Dimension source[i] moved to position destination[i]; the others keep their order. moveaxis is its NumPy name.
inline Tensor movedim(const Tensor& self, IntArrayRef source, IntArrayRef destination) {
  return ops::movedim(self, source, destination);
}
inline Tensor movedim(const Tensor& self, int64_t source, int64_t destination) {
  return ops::movedim_int(self, source, destination);
}
inline Tensor moveaxis(const Tensor& self, IntArrayRef source, IntArrayRef destination) {
  return ops::moveaxis(self, source, destination);
}
inline Tensor moveaxis(const Tensor& self, int64_t source, int64_t destination) {
  return ops::moveaxis_int(self, source, destination);
}
/// A matrix transposed; self when it has fewer than two dimensions. Throws ValueError when it has more.
inline Tensor t(const Tensor& self) { return ops::t(self); }
/// Without dimensions of size one: all of them, or those named, where their size is one.
inline Tensor squeeze(const Tensor& self) { return ops::squeeze(self); }
inline Tensor squeeze(const Tensor& self, int64_t dim) { return ops::squeeze_dim(self, dim); }
inline Tensor squeeze(const Tensor& self, IntArrayRef dim) { return ops::squeeze_dims(self, dim); }
inline Tensor squeeze(const Tensor& self, std::initializer_list<int64_t> dim) { return ops::squeeze_dims(self, dim); }
/// With a dimension of size one at `dim`, in [-dim() - 1, dim()].
inline Tensor unsqueeze(const Tensor& self, int64_t dim) { return ops::unsqueeze(self, dim); }
/// With dimensions of size one added until there are one, two (before), three (around).
inline Tensor atleast_1d(const Tensor& self) { return ops::atleast_1d(self); }
inline Tensor atleast_2d(const Tensor& self) { return ops::atleast_2d(self); }
inline Tensor atleast_3d(const Tensor& self) { return ops::atleast_3d(self); }

// ---- parts ----

/// The slice at `index` of `dim`, which is dropped.
inline Tensor select(const Tensor& self, int64_t dim, int64_t index) { return ops::select(self, dim, index); }
/// Elements start, start + step, ... before `end` of dimension `dim`, as a Python slice takes them; step > 0.
inline Tensor slice(const Tensor& self, int64_t dim = 0, std::optional<int64_t> start = std::nullopt,
                    std::optional<int64_t> end = std::nullopt, int64_t step = 1) {
  return ops::slice(self, dim, start, end, step);
}
/// `length` elements from `start` of dimension `dim`. Throws IndexError when they are not all there.
inline Tensor narrow(const Tensor& self, int64_t dim, int64_t start, int64_t length) {
  return ops::narrow(self, dim, start, length);
}
inline Tensor narrow(const Tensor& self, int64_t dim, const Tensor& start, int64_t length) {
  return ops::narrow_Tensor(self, dim, start, length);
}
/// The elements with index dim2 = index dim1 + offset; both dimensions are dropped and the diagonal comes last.
inline Tensor diagonal(const Tensor& self, int64_t offset = 0, int64_t dim1 = 0, int64_t dim2 = 1) {
  return ops::diagonal(self, offset, dim1, dim2);
}
/// Parts of `split_size` along `dim`, the last one smaller where it does not divide; or parts of the given sizes.
inline std::vector<Tensor> split(const Tensor& self, int64_t split_size, int64_t dim = 0) {
  return ops::split(self, split_size, dim);
}
inline std::vector<Tensor> split(const Tensor& self, IntArrayRef split_sizes, int64_t dim = 0) {
  return ops::split_sizes(self, split_sizes, dim);
}
inline std::vector<Tensor> split(const Tensor& self, std::initializer_list<int64_t> split_sizes, int64_t dim = 0) {
  return ops::split_sizes(self, split_sizes, dim);
}
inline std::vector<Tensor> split_with_sizes(const Tensor& self, IntArrayRef split_sizes, int64_t dim = 0) {
  return ops::split_with_sizes(self, split_sizes, dim);
}
/// At most `chunks` parts of one size along `dim`, the last one smaller where it does not divide.
inline std::vector<Tensor> chunk(const Tensor& self, int64_t chunks, int64_t dim = 0) {
  return ops::chunk(self, chunks, dim);
}
/// Exactly `sections` parts along `dim`, the first ones larger by one; or parts that end at the given indices.
inline std::vector<Tensor> tensor_split(const Tensor& self, int64_t sections, int64_t dim = 0) {
  return ops::tensor_split(self, sections, dim);
}
inline std::vector<Tensor> tensor_split(const Tensor& self, IntArrayRef indices, int64_t dim = 0) {
  return ops::tensor_split_indices(self, indices, dim);
}
inline std::vector<Tensor> tensor_split(const Tensor& self, std::initializer_list<int64_t> indices, int64_t dim = 0) {
  return ops::tensor_split_indices(self, indices, dim);
}
inline std::vector<Tensor> tensor_split(const Tensor& self, const Tensor& indices_or_sections, int64_t dim = 0) {
  return ops::tensor_split_Tensor(self, indices_or_sections, dim);
}
/// Every slice along `dim`, which is dropped.
inline std::vector<Tensor> unbind(const Tensor& self, int64_t dim = 0) { return ops::unbind(self, dim); }

/// `shape` with its -1 replaced. Throws ValueError naming `op` when it cannot hold `numel` elements.
DimVector infer_size(IntArrayRef shape, int64_t numel, const char* op);
/// Whether some element of such a tensor may be another one too; false is certain.
bool may_overlap(IntArrayRef sizes, IntArrayRef strides);

namespace native {
inline detail::Geometry geometry_of(const Tensor& self) {
  return {self.sizes(), self.strides(), self.storage_offset()};
}
// The dimensions of `t` that are not in `taken`, in order.
DimVector other_dims(const Tensor& t, IntArrayRef taken);
// A view of `self` with a geometry that lies within its storage.
inline Tensor view_of(const Tensor& self, const detail::Geometry& geometry, ViewOrigin origin = ViewOrigin::Single) {
  return detail::make_view(self, geometry.sizes, geometry.strides, geometry.offset, origin);
}
// Below autograd: dimension d of the view is dimension order[d] of `self`.
inline Tensor permuted(const Tensor& self, IntArrayRef order) {
  detail::Geometry geometry = geometry_of(self);
  geometry.permute(order);
  return view_of(self, geometry);
}
// Below autograd: the same bytes as elements of `dtype`, whose size may differ.
Tensor view_dtype(const Tensor& self, ScalarType dtype);
// `self` itself when it has that dtype already.
inline Tensor seen_as(const Tensor& self, ScalarType dtype) {
  return self.scalar_type() == dtype ? self : view_dtype(self, dtype);
}
// Below autograd: `self` broadcast to `sizes`, which it must broadcast to.
Tensor expand_as_strided(const Tensor& self, IntArrayRef sizes);
// Below autograd: `length` elements of dimension `dim` from `start`, or every `step`-th; all in range.
Tensor part(const Tensor& self, int64_t dim, int64_t start, int64_t length, int64_t step = 1);
}  // namespace native

namespace kernels {
// out[offset + sum_d i_d strides_d] += values[i] for all i; `out` is contiguous.
inline constinit Kernel<void(const Tensor& out, const Tensor& values, IntArrayRef strides, int64_t offset)> strided_sum{
    "strided_sum"};
}  // namespace kernels

}  // namespace rush
