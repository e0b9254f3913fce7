// Whole slices along one dimension, picked by a tensor of indices: read, written, added to, filled, repeated.
#pragma once
#include "core/dispatch/kernel.h"
#include "core/dispatch/op.h"
#include "core/ops/index/index.h"

namespace rush {

namespace ops {
inline constinit Op<Tensor(const Tensor&, int64_t, const Tensor&)> index_select{
    "aten::index_select(Tensor self, int dim, Tensor index) -> Tensor"};
inline constinit Op<Tensor(const Tensor&, int64_t, const Tensor&, const Tensor&, const Scalar&)> index_add{
    "aten::index_add(Tensor self, int dim, Tensor index, Tensor source, *, Scalar alpha=1) -> Tensor"};
inline constinit Op<Tensor&(Tensor&, int64_t, const Tensor&, const Tensor&, const Scalar&)> index_add_{
    "aten::index_add_(Tensor(a!) self, int dim, Tensor index, Tensor source, *, Scalar alpha=1) -> Tensor(a!)"};
inline constinit Op<Tensor(const Tensor&, int64_t)> index_order{"rush::index_order(Tensor index, int size) -> Tensor"};
inline constinit Op<Tensor(const Tensor&, int64_t, const Tensor&, const Tensor&, const Tensor&)> index_add_in_order{
    "rush::index_add_in_order(Tensor self, int dim, Tensor index, Tensor source, Tensor order) -> Tensor"};
inline constinit Op<Tensor(const Tensor&, int64_t, const Tensor&, const Tensor&)> index_copy{
    "aten::index_copy(Tensor self, int dim, Tensor index, Tensor source) -> Tensor"};
inline constinit Op<Tensor&(Tensor&, int64_t, const Tensor&, const Tensor&)> index_copy_{
    "aten::index_copy_(Tensor(a!) self, int dim, Tensor index, Tensor source) -> Tensor(a!)"};
inline constinit Op<Tensor(const Tensor&, int64_t, const Tensor&, const Scalar&)> index_fill_int_Scalar{
    "aten::index_fill.int_Scalar(Tensor self, int dim, Tensor index, Scalar value) -> Tensor"};
inline constinit Op<Tensor(const Tensor&, int64_t, const Tensor&, const Tensor&)> index_fill_int_Tensor{
    "aten::index_fill.int_Tensor(Tensor self, int dim, Tensor index, Tensor value) -> Tensor"};
inline constinit Op<Tensor&(Tensor&, int64_t, const Tensor&, const Scalar&)> index_fill__int_Scalar{
    "aten::index_fill_.int_Scalar(Tensor(a!) self, int dim, Tensor index, Scalar value) -> Tensor(a!)"};
inline constinit Op<Tensor&(Tensor&, int64_t, const Tensor&, const Tensor&)> index_fill__int_Tensor{
    "aten::index_fill_.int_Tensor(Tensor(a!) self, int dim, Tensor index, Tensor value) -> Tensor(a!)"};
inline constinit Op<Tensor(const Tensor&, std::optional<int64_t>)> repeat_interleave_Tensor{
    "aten::repeat_interleave.Tensor(Tensor repeats, *, SymInt? output_size=None) -> Tensor", {Tag::DynamicOutputShape}};
inline constinit Op<Tensor(const Tensor&, const Tensor&, std::optional<int64_t>, std::optional<int64_t>)>
    repeat_interleave{
        "aten::repeat_interleave.self_Tensor(Tensor self, Tensor repeats, int? dim=None, *, SymInt? output_size=None) "
        "-> Tensor"};
inline constinit Op<Tensor(const Tensor&, int64_t, std::optional<int64_t>, std::optional<int64_t>)>
    repeat_interleave_self_int{
        "aten::repeat_interleave.self_int(Tensor self, SymInt repeats, int? dim=None, *, SymInt? output_size=None) -> "
        "Tensor"};
}  // namespace ops

/// The slices of `self` at `index` (n) along `dim`: self's shape with n at `dim`. All operators of this family throw
/// IndexError for an index out of range, ValueError for shapes that do not match.
inline Tensor index_select(const Tensor& self, int64_t dim, const Tensor& index) {
  return ops::index_select(self, dim, index);
}
/// `self` with alpha times slice i of `source` added to its slice index[i], for all i.
inline Tensor index_add(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source,
                        const Scalar& alpha = 1) {
  return ops::index_add(self, dim, index, source, alpha);
}
/// `self` with its slice index[i] replaced by slice i of `source`.
inline Tensor index_copy(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source) {
  return ops::index_copy(self, dim, index, source);
}
/// `self` with the slices at `index` filled with `value`; negative indices count from the end.
inline Tensor index_fill(const Tensor& self, int64_t dim, const Tensor& index, const Scalar& value) {
  return ops::index_fill_int_Scalar(self, dim, index, value);
}
inline Tensor index_fill(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& value) {
  return ops::index_fill_int_Tensor(self, dim, index, value);
}
/// 0 repeats[0] times, then 1 repeats[1] times, and so on.
inline Tensor repeat_interleave(const Tensor& repeats, std::optional<int64_t> output_size = std::nullopt) {
  return ops::repeat_interleave_Tensor(repeats, output_size);
}
/// Each slice of `self` along `dim` repeated, slice i repeats[i] times; without a dimension, each element of self as
/// one dimension. One number of repeats serves all. `output_size`, the sum of the repeats, saves computing it.
inline Tensor repeat_interleave(const Tensor& self, const Tensor& repeats, std::optional<int64_t> dim = std::nullopt,
                                std::optional<int64_t> output_size = std::nullopt) {
  return ops::repeat_interleave(self, repeats, dim, output_size);
}
inline Tensor repeat_interleave(const Tensor& self, int64_t repeats, std::optional<int64_t> dim = std::nullopt,
                                std::optional<int64_t> output_size = std::nullopt) {
  return ops::repeat_interleave_self_int(self, repeats, dim, output_size);
}

namespace native {
// A write of whole slices whose indices are checked and whose memory is there. On the CPU, `run` allocates nothing if
// the slices are row-major; on a GPU, if it assigns.
struct SliceWrite {
  Tensor view, offsets, values;  // as kernels::index_scatter takes them
  int64_t before;
  IndexWrite write;
  Tensor order = {};
  void run() const;
};
// The write that index_copy_ (Assign) and index_add_ (Add) are. Throws as they do, naming `op`.
SliceWrite prepare_slice_write(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source,
                               const char* op, IndexWrite write);
}  // namespace native

namespace kernels {
// Allocates `out` (int64), of as many elements as `repeats` (int64, row-major) sum to, and fills it. Throws ValueError
// when a number is negative, or when the sum is not `output_size`.
inline constinit Kernel<void(const Tensor& repeats, std::optional<int64_t> output_size, Tensor& out)> repeat_interleave{
    "repeat_interleave"};
}  // namespace kernels

}  // namespace rush
