// gather and scatter: an index of its own for every element, along one dimension.
#pragma once
#include "core/dispatch/kernel.h"
#include "core/dispatch/op.h"
#include "core/iterator/tensor_iterator.h"
#include "core/ops/index/index.h"

namespace rush {

namespace ops {
inline constinit Op<Tensor(const Tensor&, int64_t, const Tensor&, bool)> gather{
    "aten::gather(Tensor self, int dim, Tensor index, *, bool sparse_grad=False) -> Tensor"};
inline constinit Op<Tensor(const Tensor&, const Tensor&, std::optional<int64_t>)> take_along_dim{
    "aten::take_along_dim(Tensor self, Tensor indices, int? dim=None) -> Tensor"};
inline constinit Op<Tensor(const Tensor&, int64_t, const Tensor&, const Tensor&)> scatter{
    "aten::scatter.src(Tensor self, int dim, Tensor index, Tensor src) -> Tensor"};
inline constinit Op<Tensor&(Tensor&, int64_t, const Tensor&, const Tensor&)> scatter_{
    "aten::scatter_.src(Tensor(a!) self, int dim, Tensor index, Tensor src) -> Tensor(a!)"};
inline constinit Op<Tensor(const Tensor&, int64_t, const Tensor&, const Scalar&)> scatter_value{
    "aten::scatter.value(Tensor self, int dim, Tensor index, Scalar value) -> Tensor"};
inline constinit Op<Tensor&(Tensor&, int64_t, const Tensor&, const Scalar&)> scatter__value{
    "aten::scatter_.value(Tensor(a!) self, int dim, Tensor index, Scalar value) -> Tensor(a!)"};
inline constinit Op<Tensor(const Tensor&, int64_t, const Tensor&, const Tensor&)> scatter_add{
    "aten::scatter_add(Tensor self, int dim, Tensor index, Tensor src) -> Tensor"};
inline constinit Op<Tensor&(Tensor&, int64_t, const Tensor&, const Tensor&)> scatter_add_{
    "aten::scatter_add_(Tensor(a!) self, int dim, Tensor index, Tensor src) -> Tensor(a!)"};
inline constinit Op<Tensor(const Tensor&, int64_t, const Tensor&, const Tensor&, std::string_view)> scatter_with_reduce{
    "aten::scatter.reduce(Tensor self, int dim, Tensor index, Tensor src, *, str reduce) -> Tensor"};
inline constinit Op<Tensor&(Tensor&, int64_t, const Tensor&, const Tensor&, std::string_view)> scatter__reduce{
    "aten::scatter_.reduce(Tensor(a!) self, int dim, Tensor index, Tensor src, *, str reduce) -> Tensor(a!)"};
inline constinit Op<Tensor(const Tensor&, int64_t, const Tensor&, const Scalar&, std::string_view)>
    scatter_value_reduce{
        "aten::scatter.value_reduce(Tensor self, int dim, Tensor index, Scalar value, *, str reduce) -> Tensor"};
inline constinit Op<Tensor&(Tensor&, int64_t, const Tensor&, const Scalar&, std::string_view)> scatter__value_reduce{
    "aten::scatter_.value_reduce(Tensor(a!) self, int dim, Tensor index, Scalar value, *, str reduce) -> Tensor(a!)"};
inline constinit Op<Tensor(const Tensor&, int64_t, const Tensor&, const Tensor&, std::string_view, bool)>
    scatter_reduce{
        "aten::scatter_reduce.two(Tensor self, int dim, Tensor index, Tensor src, str reduce, *, bool "
        "include_self=True) -> Tensor"};
inline constinit Op<Tensor&(Tensor&, int64_t, const Tensor&, const Tensor&, std::string_view, bool)> scatter_reduce_{
    "aten::scatter_reduce_.two(Tensor(a!) self, int dim, Tensor index, Tensor src, str reduce, *, bool "
    "include_self=True) -> Tensor(a!)"};
inline constinit Op<Tensor(const Tensor&, int64_t)> one_hot{"aten::one_hot(Tensor self, int num_classes=-1) -> Tensor",
                                                            {Tag::DynamicOutputShape}};
}  // namespace ops

/// out[i][j][k] = self[i][index[i][j][k]][k] for dim 1, and so on: the shape of `index`, which has self's dimensions
/// and nowhere but along `dim` is longer. All operators of this family throw IndexError for an index out of range,
/// negative ones included, ValueError for shapes that do not fit.
inline Tensor gather(const Tensor& self, int64_t dim, const Tensor& index, bool sparse_grad = false) {
  return ops::gather(self, dim, index, sparse_grad);
}
/// gather after self and `indices` were broadcast to each other outside `dim`; without one, self is seen as one
/// dimension.
inline Tensor take_along_dim(const Tensor& self, const Tensor& indices, std::optional<int64_t> dim = std::nullopt) {
  return ops::take_along_dim(self, indices, dim);
}
/// `self` with self[i][index[i][j][k]][k] = src[i][j][k] for dim 1, and so on. Of several values for one element the
/// last stays. `src` is nowhere shorter than `index`.
inline Tensor scatter(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src) {
  return ops::scatter(self, dim, index, src);
}
inline Tensor scatter(const Tensor& self, int64_t dim, const Tensor& index, const Scalar& value) {
  return ops::scatter_value(self, dim, index, value);
}
/// `reduce` is "add" or "multiply": combined with what is there.
inline Tensor scatter(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src,
                      std::string_view reduce) {
  return ops::scatter_with_reduce(self, dim, index, src, reduce);
}
inline Tensor scatter(const Tensor& self, int64_t dim, const Tensor& index, const Scalar& value,
                      std::string_view reduce) {
  return ops::scatter_value_reduce(self, dim, index, value, reduce);
}
/// As scatter, adding.
inline Tensor scatter_add(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src) {
  return ops::scatter_add(self, dim, index, src);
}
/// As scatter, with `reduce` one of "sum", "prod", "mean", "amax" and "amin" over all values for an element, and its
/// old value too when `include_self`.
inline Tensor scatter_reduce(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src,
                             std::string_view reduce, bool include_self = true) {
  return ops::scatter_reduce(self, dim, index, src, reduce, include_self);
}

/// For each class number of `self` (int64) a row of zeros with a one at that number: self's shape with `num_classes`
/// behind it; by default one more than the largest number. Throws IndexError for a number outside [0, num_classes).
inline Tensor one_hot(const Tensor& self, int64_t num_classes = -1) { return ops::one_hot(self, num_classes); }

namespace kernels {
// Both take `view`, self with the sizes of the index and stride 0 along the indexed dimension: element p is at view[p]
// + offsets[p] (row-major, see index_offsets). out (row-major) = the elements at the offsets of `index` (int64), which
// nothing but this kernel needs.
inline constinit Kernel<void(const Tensor& out, const Tensor& view, const Tensor& index, const IndexedDim& where)>
    gather{"gather"};
// Writes `src` (row-major, or one element for all) to the elements, in order along `dim`.
inline constinit Kernel<void(const Tensor& view, const Tensor& offsets, const Tensor& src, int64_t dim,
                             IndexWrite write)>
    scatter{"scatter"};
// Operands: out, sum, count (int64). out = sum / max(count, 1), integers rounded down.
inline constinit Kernel<void(TensorIterator&)> scatter_mean{"scatter_reduce"};
}  // namespace kernels

}  // namespace rush
