// The largest and the smallest element, and where they are. NaN counts as larger and as smaller than every number.
#pragma once
#include <tuple>

#include "core/dispatch/kernel.h"
#include "core/ops/reduce/along_dim.h"
#include "core/ops/reduce/reduce.h"

namespace rush {

namespace ops {
using ReducePairOp = Op<std::tuple<Tensor, Tensor>(const Tensor&, int64_t, bool)>;
using ArgOp = Op<Tensor(const Tensor&, std::optional<int64_t>, bool)>;

inline constinit Op<Tensor(const Tensor&, IntArrayRef, bool)> amax{
    "aten::amax(Tensor self, int[1] dim=[], bool keepdim=False) -> Tensor"};
inline constinit Op<Tensor(const Tensor&, IntArrayRef, bool)> amin{
    "aten::amin(Tensor self, int[1] dim=[], bool keepdim=False) -> Tensor"};
inline constinit Op<std::tuple<Tensor, Tensor>(const Tensor&, std::optional<int64_t>, bool)> aminmax{
    "aten::aminmax(Tensor self, *, int? dim=None, bool keepdim=False) -> (Tensor min, Tensor max)"};
inline constinit ReduceAllOp max{"aten::max(Tensor self) -> Tensor"};
inline constinit ReduceAllOp min{"aten::min(Tensor self) -> Tensor"};
inline constinit ReducePairOp max_dim{
    "aten::max.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)"};
inline constinit ReducePairOp min_dim{
    "aten::min.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)"};
inline constinit ArgOp argmax{"aten::argmax(Tensor self, int? dim=None, bool keepdim=False) -> Tensor"};
inline constinit ArgOp argmin{"aten::argmin(Tensor self, int? dim=None, bool keepdim=False) -> Tensor"};
}  // namespace ops

// All of these throw IndexError where an empty dimension is reduced, and NotImplementedError for complex tensors.

/// The largest element, over all dimensions or the given ones. Among equal ones amax and max share the gradient.
inline Tensor amax(const Tensor& self, IntArrayRef dim = {}, bool keepdim = false) {
  return ops::amax(self, dim, keepdim);
}
/// The smallest, likewise.
inline Tensor amin(const Tensor& self, IntArrayRef dim = {}, bool keepdim = false) {
  return ops::amin(self, dim, keepdim);
}
/// (smallest, largest).
inline std::tuple<Tensor, Tensor> aminmax(const Tensor& self, std::optional<int64_t> dim = std::nullopt,
                                          bool keepdim = false) {
  return ops::aminmax(self, dim, keepdim);
}
inline Tensor max(const Tensor& self) { return ops::max(self); }
inline Tensor min(const Tensor& self) { return ops::min(self); }
/// (values, indices) along `dim`; of equal elements the first, which takes the whole gradient.
inline std::tuple<Tensor, Tensor> max(const Tensor& self, int64_t dim, bool keepdim = false) {
  return ops::max_dim(self, dim, keepdim);
}
inline std::tuple<Tensor, Tensor> min(const Tensor& self, int64_t dim, bool keepdim = false) {
  return ops::min_dim(self, dim, keepdim);
}
/// Where the largest element is along `dim`, the first of equal ones; without `dim`, its position in row-major order.
inline Tensor argmax(const Tensor& self, std::optional<int64_t> dim = std::nullopt, bool keepdim = false) {
  return ops::argmax(self, dim, keepdim);
}
/// The smallest, likewise.
inline Tensor argmin(const Tensor& self, std::optional<int64_t> dim = std::nullopt, bool keepdim = false) {
  return ops::argmin(self, dim, keepdim);
}

namespace kernels {
inline constinit ReduceKernel amax{"amax"}, amin{"amin"};
// Both at once, as ReduceKernel says.
inline constinit Kernel<void(const Tensor& smallest, const Tensor& largest, const Tensor& input, IntArrayRef dims)>
    aminmax{"aminmax"};
// Along the middle dimension of `input`, row-major and seen as `shape`: the first largest or smallest element into
// `values`, if that is defined, and its position into `indices`, both (outer, inner).
inline constinit Kernel<void(const Tensor& values, const Tensor& indices, const Tensor& input, const AlongDim& shape,
                             bool largest)>
    extreme{"extreme"};
}  // namespace kernels

}  // namespace rush
