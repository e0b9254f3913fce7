// Looking values up: searchsorted, bucketize, isin.
#pragma once
#include <string_view>

#include "core/dispatch/kernel.h"
#include "core/dispatch/op.h"

namespace rush {

namespace ops {
inline constinit Op<Tensor(const Tensor&, const Tensor&, bool, bool, const std::optional<std::string_view>&,
                           const std::optional<Tensor>&)>
    searchsorted{
        "aten::searchsorted.Tensor(Tensor sorted_sequence, Tensor self, *, bool out_int32=False, bool right=False, "
        "str? side=None, Tensor? sorter=None) -> Tensor"};
inline constinit Op<Tensor(const Tensor&, const Scalar&, bool, bool, const std::optional<std::string_view>&,
                           const std::optional<Tensor>&)>
    searchsorted_Scalar{
        "aten::searchsorted.Scalar(Tensor sorted_sequence, Scalar self, *, bool out_int32=False, bool right=False, "
        "str? side=None, Tensor? sorter=None) -> Tensor"};
inline constinit Op<Tensor(const Tensor&, const Tensor&, bool, bool)> bucketize{
    "aten::bucketize.Tensor(Tensor self, Tensor boundaries, *, bool out_int32=False, bool right=False) -> Tensor"};
inline constinit Op<Tensor(const Scalar&, const Tensor&, bool, bool)> bucketize_Scalar{
    "aten::bucketize.Scalar(Scalar self, Tensor boundaries, *, bool out_int32=False, bool right=False) -> Tensor"};
inline constinit Op<Tensor(const Tensor&, const Tensor&, bool, bool)> isin{
    "aten::isin.Tensor_Tensor(Tensor elements, Tensor test_elements, *, bool assume_unique=False, bool invert=False) "
    "-> Tensor"};
inline constinit Op<Tensor(const Tensor&, const Scalar&, bool, bool)> isin_Tensor_Scalar{
    "aten::isin.Tensor_Scalar(Tensor elements, Scalar test_element, *, bool assume_unique=False, bool invert=False) -> "
    "Tensor"};
inline constinit Op<Tensor(const Scalar&, const Tensor&, bool, bool)> isin_Scalar_Tensor{
    "aten::isin.Scalar_Tensor(Scalar element, Tensor test_elements, *, bool assume_unique=False, bool invert=False) -> "
    "Tensor"};
}  // namespace ops

/// Where each value would be inserted into the ascending `sorted_sequence` to keep it in order: before equal elements,
/// or behind them if `right` (or `side` "right"). The sequence has one dimension, or all of self's but the last in
/// common with it, and is then searched row by row. `sorter` gives the order of a sequence that is not sorted. int64,
/// or int32 if `out_int32`. Throws ValueError for other shapes or a contradicting side, IndexError for a sorter that
/// points outside.
inline Tensor searchsorted(const Tensor& sorted_sequence, const Tensor& self, bool out_int32 = false,
                           bool right = false, const std::optional<std::string_view>& side = std::nullopt,
                           const std::optional<Tensor>& sorter = std::nullopt) {
  return ops::searchsorted(sorted_sequence, self, out_int32, right, side, sorter);
}
inline Tensor searchsorted(const Tensor& sorted_sequence, const Scalar& self, bool out_int32 = false,
                           bool right = false, const std::optional<std::string_view>& side = std::nullopt,
                           const std::optional<Tensor>& sorter = std::nullopt) {
  return ops::searchsorted_Scalar(sorted_sequence, self, out_int32, right, side, sorter);
}
/// searchsorted with one-dimensional boundaries, the other way round.
inline Tensor bucketize(const Tensor& self, const Tensor& boundaries, bool out_int32 = false, bool right = false) {
  return ops::bucketize(self, boundaries, out_int32, right);
}
inline Tensor bucketize(const Scalar& self, const Tensor& boundaries, bool out_int32 = false, bool right = false) {
  return ops::bucketize_Scalar(self, boundaries, out_int32, right);
}
/// Whether each element occurs among the test elements, or with `invert` does not. NaN equals nothing.
inline Tensor isin(const Tensor& elements, const Tensor& test_elements, bool assume_unique = false,
                   bool invert = false) {
  return ops::isin(elements, test_elements, assume_unique, invert);
}
inline Tensor isin(const Tensor& elements, const Scalar& test_element, bool assume_unique = false,
                   bool invert = false) {
  return ops::isin_Tensor_Scalar(elements, test_element, assume_unique, invert);
}
inline Tensor isin(const Scalar& element, const Tensor& test_elements, bool assume_unique = false,
                   bool invert = false) {
  return ops::isin_Scalar_Tensor(element, test_elements, assume_unique, invert);
}

namespace kernels {
// All tensors are row-major, sequence and values of one dtype, the output int64 or int32. Row r of the values is looked
// up in row r of the sequence, or in its only one. `sorter` may be undefined.
inline constinit Kernel<void(const Tensor& output, const Tensor& sequence, const Tensor& values, const Tensor& sorter,
                             bool right)>
    searchsorted{"searchsorted"};
inline constinit Kernel<void(const Tensor& output, const Tensor& elements, const Tensor& test, bool invert)> isin{
    "isin"};
}  // namespace kernels

}  // namespace rush
