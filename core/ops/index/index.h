// Advanced indexing: reading and writing the elements that tensors of indices point at.
#pragma once
#include "core/dispatch/kernel.h"
#include "core/dispatch/op.h"

namespace rush {

namespace ops {
inline constinit Op<Tensor(const Tensor&, OptionalTensorList)> index{
    "aten::index.Tensor(Tensor self, Tensor?[] indices) -> Tensor", {Tag::AnyDevice, Tag::DynamicOutputShape}};
inline constinit Op<Tensor&(Tensor&, OptionalTensorList, const Tensor&, bool)> index_put_{
    "aten::index_put_(Tensor(a!) self, Tensor?[] indices, Tensor values, bool accumulate=False) -> Tensor(a!)",
    {Tag::AnyDevice}};
inline constinit Op<Tensor(const Tensor&, OptionalTensorList, const Tensor&, bool)> index_put{
    "aten::index_put(Tensor self, Tensor?[] indices, Tensor values, bool accumulate=False) -> Tensor",
    {Tag::AnyDevice}};
inline constinit Op<Tensor(const Tensor&, const Tensor&)> take{"aten::take(Tensor self, Tensor index) -> Tensor"};
inline constinit Op<Tensor(const Tensor&, const Tensor&, const Tensor&, bool)> put{
    "aten::put(Tensor self, Tensor index, Tensor source, bool accumulate=False) -> Tensor"};
inline constinit Op<Tensor&(Tensor&, const Tensor&, const Tensor&, bool)> put_{
    "aten::put_(Tensor(a!) self, Tensor index, Tensor source, bool accumulate=False) -> Tensor(a!)"};
}  // namespace ops

/// The elements of `self` at `indices`, one entry a dimension from the first on: integers (int8 to int64, negative ones
/// count from the end), a bool mask, which stands for as many dimensions as it has, or nothing for the whole dimension.
/// The integer tensors broadcast with each other, and their shape takes the place of the dimensions that they index: at
/// the first of them when they are neighbours, otherwise at the front. Throws IndexError for an index out of range, too
/// many indices or a mask of another shape. https://pytorch.org/docs/stable/generated/torch.Tensor.index_put_.html
inline Tensor index(const Tensor& self, OptionalTensorList indices) { return ops::index(self, indices); }
/// Writes `values`, broadcast to the shape of index(self, indices), at the indexed elements; adds them when
/// `accumulate`, also where an element is indexed twice (otherwise the last one stays). Throws as `index`, and
/// TypeError when the dtypes differ.
inline Tensor index_put(const Tensor& self, OptionalTensorList indices, const Tensor& values, bool accumulate = false) {
  return ops::index_put(self, indices, values, accumulate);
}
inline Tensor& index_put_(Tensor& self, OptionalTensorList indices, const Tensor& values, bool accumulate = false) {
  return ops::index_put_(self, indices, values, accumulate);
}
/// The elements at `index` of self seen as one dimension, in the shape of `index`.
inline Tensor take(const Tensor& self, const Tensor& index) { return ops::take(self, index); }
/// Writes, or adds, `source` at `index` of self seen as one dimension. They have as many elements.
inline Tensor put(const Tensor& self, const Tensor& index, const Tensor& source, bool accumulate = false) {
  return ops::put(self, index, source, accumulate);
}

/// One dimension that a tensor of indices addresses, for `kernels::index_offsets`.
struct IndexedDim {
  const char* op;  // named in errors
  int64_t dim, size, stride;
  bool wraps;  // negative indices count from the end
};

/// What is done with a value that is written at an index.
enum class IndexWrite : uint8_t { Assign, Add, Multiply, Minimum, Maximum };

namespace kernels {
// Note [Indexing by offsets]
// Every operator that indexes whole slices works in two steps. First the indices become offsets into self's memory, in
// elements, which is where they are checked: nothing is written before all are known to be in range. Then the slices
// are copied: `view` is self without its indexed dimensions, of sizes (before..., after...), and slice number j of the
// result (before..., n, after...) is the view moved by offsets[j].

// offsets (row-major) = index * stride, or += when `add`; same shape. Throws IndexError for an index out of range.
inline constinit Kernel<void(const Tensor& offsets, const Tensor& index, const IndexedDim& where, bool add)>
    index_offsets{"index"};
// out (row-major) = the slices of `view` at `offsets`. `before` dimensions of the view come before the indexed ones.
inline constinit Kernel<void(const Tensor& out, const Tensor& view, const Tensor& offsets, int64_t before)>
    index_gather{"index"};
// Writes `values` (row-major, or one element for all) into the slices of `view`, in the offsets' order. `order` is what
// offset_order gives, or undefined.
inline constinit Kernel<void(const Tensor& view, const Tensor& offsets, const Tensor& values, int64_t before,
                             IndexWrite write, const Tensor& order)>
    index_scatter{"index_put_"};
// order (n) = the numbers of the offsets, which are below `bound`, from the smallest to the largest; those of equal
// ones stay as they are.
inline constinit Kernel<void(const Tensor& order, const Tensor& offsets, int64_t bound)> offset_order{"index_order"};
}  // namespace kernels

namespace native {
// Below autograd.
Tensor index(const Tensor& self, OptionalTensorList indices);
Tensor& index_put_(Tensor& self, OptionalTensorList indices, const Tensor& values, bool accumulate);

// A tensor of indices as int64 on `device`. Throws TypeError naming `op` unless it holds integers.
Tensor index_as_int64(const Tensor& index, Device device, const char* op);
// The offsets of such a tensor's indices, row-major: Note [Indexing by offsets].
Tensor offsets_of(const Tensor& index, const IndexedDim& where);
// Throws ValueError naming `op` when elements of `target` share memory, as those of an expanded tensor do.
void check_writable(const Tensor& target, const char* op);
// `values` of self's dtype ready for index_scatter into a tensor that shares memory with `self`.
Tensor values_for_scatter(const Tensor& values, IntArrayRef sizes, const Tensor& self);
}  // namespace native

}  // namespace rush
