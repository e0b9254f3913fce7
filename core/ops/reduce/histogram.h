// How often values occur: histc, bincount.
#pragma once
#include "core/dispatch/kernel.h"
#include "core/dispatch/op.h"

namespace rush {

namespace ops {
inline constinit Op<Tensor(const Tensor&, int64_t, const Scalar&, const Scalar&)> histc{
    "aten::histc(Tensor self, int bins=100, Scalar min=0, Scalar max=0) -> Tensor"};
inline constinit Op<Tensor(const Tensor&, const std::optional<Tensor>&, int64_t)> bincount{
    "aten::bincount(Tensor self, Tensor? weights=None, SymInt minlength=0) -> Tensor", {Tag::DynamicOutputShape}};
}  // namespace ops

/// Counts of elements in `bins` intervals of one width between min and max, in self's dtype; the last one includes max.
/// Where min equals max the range is that of the elements. What lies outside, and NaN, is not counted. Throws
/// ValueError for no bins, min above max or a range that is not finite, NotImplementedError for integers.
inline Tensor histc(const Tensor& self, int64_t bins = 100, const Scalar& min = 0, const Scalar& max = 0) {
  return ops::histc(self, bins, min, max);
}
/// How often each of 0, 1, ... occurs in the one-dimensional tensor of integers, up to its largest or to minlength - 1;
/// with weights, the sums of theirs, as float64 (float32 for float32). Throws ValueError for negative elements or other
/// shapes. Not on the meta device.
inline Tensor bincount(const Tensor& self, const std::optional<Tensor>& weights = std::nullopt, int64_t minlength = 0) {
  return ops::bincount(self, weights, minlength);
}

namespace kernels {
// `output` arrives zeroed, in the input's floating dtype.
inline constinit Kernel<void(const Tensor& output, const Tensor& input, double min, double max)> histc{"histc"};
// `output` arrives zeroed: int64, or the dtype of the weights, which may be undefined. Elements index it.
inline constinit Kernel<void(const Tensor& output, const Tensor& input, const Tensor& weights)> bincount{"bincount"};
}  // namespace kernels

}  // namespace rush
