// Elements by their rank: kthvalue, median, quantile; and mode, the most frequent one.
#pragma once
#include <string_view>
#include <tuple>

#include "core/dispatch/kernel.h"
#include "core/dispatch/op.h"
#include "core/ops/reduce/along_dim.h"

namespace rush {

namespace ops {
using SelectDimOp = Op<std::tuple<Tensor, Tensor>(const Tensor&, int64_t, bool)>;
using QuantileOp = Op<Tensor(const Tensor&, const Tensor&, std::optional<int64_t>, bool, std::string_view)>;
using QuantileScalarOp = Op<Tensor(const Tensor&, double, std::optional<int64_t>, bool, std::string_view)>;

inline constinit Op<std::tuple<Tensor, Tensor>(const Tensor&, int64_t, int64_t, bool)> kthvalue{
    "aten::kthvalue(Tensor self, SymInt k, int dim=-1, bool keepdim=False) -> (Tensor values, Tensor indices)"};
inline constinit Op<Tensor(const Tensor&)> median{"aten::median(Tensor self) -> Tensor"};
inline constinit SelectDimOp median_dim{
    "aten::median.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)"};
inline constinit Op<Tensor(const Tensor&)> nanmedian{"aten::nanmedian(Tensor self) -> Tensor"};
inline constinit SelectDimOp nanmedian_dim{
    "aten::nanmedian.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)"};
inline constinit SelectDimOp mode{
    "aten::mode(Tensor self, int dim=-1, bool keepdim=False) -> (Tensor values, Tensor indices)"};
inline constinit QuantileOp quantile{
    "aten::quantile(Tensor self, Tensor q, int? dim=None, bool keepdim=False, *, str interpolation=\"linear\") -> "
    "Tensor"};
inline constinit QuantileScalarOp quantile_scalar{
    "aten::quantile.scalar(Tensor self, float q, int? dim=None, bool keepdim=False, *, str interpolation=\"linear\") "
    "-> Tensor"};
inline constinit QuantileOp nanquantile{
    "aten::nanquantile(Tensor self, Tensor q, int? dim=None, bool keepdim=False, *, str interpolation=\"linear\") -> "
    "Tensor"};
inline constinit QuantileScalarOp nanquantile_scalar{
    "aten::nanquantile.scalar(Tensor self, float q, int? dim=None, bool keepdim=False, *, str "
    "interpolation=\"linear\") -> Tensor"};
}  // namespace ops

/// (the k-th smallest element along `dim`, where it is), k from 1; NaN is larger than every number. Throws ValueError
/// when k is out of range, IndexError when the dimension is empty or out of range.
inline std::tuple<Tensor, Tensor> kthvalue(const Tensor& self, int64_t k, int64_t dim = -1, bool keepdim = false) {
  return ops::kthvalue(self, k, dim, keepdim);
}
/// The lower of the two middle elements; NaN where there is one.
inline Tensor median(const Tensor& self) { return ops::median(self); }
inline std::tuple<Tensor, Tensor> median(const Tensor& self, int64_t dim, bool keepdim = false) {
  return ops::median_dim(self, dim, keepdim);
}
/// The median of what is not NaN.
inline Tensor nanmedian(const Tensor& self) { return ops::nanmedian(self); }
inline std::tuple<Tensor, Tensor> nanmedian(const Tensor& self, int64_t dim, bool keepdim = false) {
  return ops::nanmedian_dim(self, dim, keepdim);
}
/// (the most frequent element along `dim`, the smallest of several, the last place where it is).
inline std::tuple<Tensor, Tensor> mode(const Tensor& self, int64_t dim = -1, bool keepdim = false) {
  return ops::mode(self, dim, keepdim);
}
/// The element at rank q (n - 1) along `dim`, or of all, for each q of a number or of a vector, which becomes the first
/// dimension. Between two elements `interpolation` decides: linear, lower, higher, midpoint, nearest. NaN where there
/// is one. Throws TypeError unless both are float32 or float64, ValueError for q outside [0, 1] or no elements.
inline Tensor quantile(const Tensor& self, const Tensor& q, std::optional<int64_t> dim = std::nullopt,
                       bool keepdim = false, std::string_view interpolation = "linear") {
  return ops::quantile(self, q, dim, keepdim, interpolation);
}
inline Tensor quantile(const Tensor& self, double q, std::optional<int64_t> dim = std::nullopt, bool keepdim = false,
                       std::string_view interpolation = "linear") {
  return ops::quantile_scalar(self, q, dim, keepdim, interpolation);
}
/// The quantiles of what is not NaN.
inline Tensor nanquantile(const Tensor& self, const Tensor& q, std::optional<int64_t> dim = std::nullopt,
                          bool keepdim = false, std::string_view interpolation = "linear") {
  return ops::nanquantile(self, q, dim, keepdim, interpolation);
}
inline Tensor nanquantile(const Tensor& self, double q, std::optional<int64_t> dim = std::nullopt, bool keepdim = false,
                          std::string_view interpolation = "linear") {
  return ops::nanquantile_scalar(self, q, dim, keepdim, interpolation);
}

namespace kernels {
// Along the middle dimension of `shape`, which is not empty; all are row-major, the outputs (outer, inner).
inline constinit Kernel<void(const Tensor& values, const Tensor& indices, const Tensor& input, const AlongDim& shape,
                             int64_t k)>
    kthvalue{"kthvalue"};
inline constinit Kernel<void(const Tensor& values, const Tensor& indices, const Tensor& input, const AlongDim& shape,
                             bool ignore_nan)>
    median{"median"};
inline constinit Kernel<void(const Tensor& values, const Tensor& indices, const Tensor& input, const AlongDim& shape)>
    mode{"mode"};
}  // namespace kernels

}  // namespace rush
