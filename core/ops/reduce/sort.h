// sort, argsort, msort, topk.
#pragma once
#include <tuple>

#include "core/dispatch/kernel.h"
#include "core/dispatch/op.h"
#include "core/ops/reduce/along_dim.h"

namespace rush {

namespace ops {
inline constinit Op<std::tuple<Tensor, Tensor>(const Tensor&, int64_t, bool)> sort{
    "aten::sort(Tensor self, int dim=-1, bool descending=False) -> (Tensor values, Tensor indices)"};
inline constinit Op<std::tuple<Tensor, Tensor>(const Tensor&, std::optional<bool>, int64_t, bool)> sort_stable{
    "aten::sort.stable(Tensor self, *, bool? stable, int dim=-1, bool descending=False) -> (Tensor values, Tensor "
    "indices)"};
inline constinit Op<Tensor(const Tensor&, int64_t, bool)> argsort{
    "aten::argsort(Tensor self, int dim=-1, bool descending=False) -> Tensor"};
inline constinit Op<Tensor(const Tensor&, bool, int64_t, bool)> argsort_stable{
    "aten::argsort.stable(Tensor self, *, bool stable, int dim=-1, bool descending=False) -> Tensor"};
inline constinit Op<Tensor(const Tensor&)> msort{"aten::msort(Tensor self) -> Tensor"};
inline constinit Op<std::tuple<Tensor, Tensor>(const Tensor&, int64_t, int64_t, bool, bool)> topk{
    "aten::topk(Tensor self, SymInt k, int dim=-1, bool largest=True, bool sorted=True) -> (Tensor values, Tensor "
    "indices)"};
}  // namespace ops

/// (elements in order along `dim`, where they were). NaN is larger than every number. Equal elements keep their order,
/// `stable` or not. Throws IndexError when `dim` is out of range, NotImplementedError for complex tensors.
inline std::tuple<Tensor, Tensor> sort(const Tensor& self, int64_t dim = -1, bool descending = false) {
  return ops::sort(self, dim, descending);
}
inline std::tuple<Tensor, Tensor> sort(const Tensor& self, std::optional<bool> stable, int64_t dim = -1,
                                       bool descending = false) {
  return ops::sort_stable(self, stable, dim, descending);
}
inline std::tuple<Tensor, Tensor> sort(const Tensor& self, TruthValue auto stable, int64_t dim = -1,
                                       bool descending = false) {
  return ops::sort_stable(self, stable, dim, descending);
}
/// Only where they were.
inline Tensor argsort(const Tensor& self, int64_t dim = -1, bool descending = false) {
  return ops::argsort(self, dim, descending);
}
inline Tensor argsort(const Tensor& self, TruthValue auto stable, int64_t dim = -1, bool descending = false) {
  return ops::argsort_stable(self, stable, dim, descending);
}
/// Sorted along the first dimension.
inline Tensor msort(const Tensor& self) { return ops::msort(self); }
/// (the k largest or smallest elements along `dim`, where they are), in order if `sorted`. Throws ValueError when k is
/// negative or larger than the dimension.
inline std::tuple<Tensor, Tensor> topk(const Tensor& self, int64_t k, int64_t dim = -1, bool largest = true,
                                       bool sorted = true) {
  return ops::topk(self, k, dim, largest, sorted);
}

namespace kernels {
// Along the middle dimension of `shape`; all tensors are row-major.
inline constinit Kernel<void(const Tensor& values, const Tensor& indices, const Tensor& input, const AlongDim& shape,
                             bool descending)>
    sort{"sort"};
// The outputs are (outer, k, inner).
inline constinit Kernel<void(const Tensor& values, const Tensor& indices, const Tensor& input, const AlongDim& shape,
                             int64_t k, bool largest, bool sorted)>
    topk{"topk"};
}  // namespace kernels

}  // namespace rush
