// Scans: each element combined with all before it along a dimension.
#pragma once
#include <tuple>

#include "core/dispatch/kernel.h"
#include "core/dispatch/op.h"
#include "core/ops/reduce/along_dim.h"

namespace rush {

namespace ops {
using ScanOp = Op<Tensor(const Tensor&, int64_t, std::optional<ScalarType>)>;
using ScanInplaceOp = Op<Tensor&(Tensor&, int64_t, std::optional<ScalarType>)>;
using ScanIndexOp = Op<std::tuple<Tensor, Tensor>(const Tensor&, int64_t)>;

inline constinit ScanOp cumsum{"aten::cumsum(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor"};
inline constinit ScanInplaceOp cumsum_{
    "aten::cumsum_(Tensor(a!) self, int dim, *, ScalarType? dtype=None) -> Tensor(a!)"};
inline constinit ScanOp cumprod{"aten::cumprod(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor"};
inline constinit ScanInplaceOp cumprod_{
    "aten::cumprod_(Tensor(a!) self, int dim, *, ScalarType? dtype=None) -> Tensor(a!)"};
inline constinit ScanIndexOp cummax{"aten::cummax(Tensor self, int dim) -> (Tensor values, Tensor indices)"};
inline constinit ScanIndexOp cummin{"aten::cummin(Tensor self, int dim) -> (Tensor values, Tensor indices)"};
inline constinit Op<Tensor(const Tensor&, int64_t)> logcumsumexp{"aten::logcumsumexp(Tensor self, int dim) -> Tensor"};
inline constinit Op<Tensor(const Tensor&, int64_t, int64_t, const std::optional<Tensor>&, const std::optional<Tensor>&)>
    diff{"aten::diff(Tensor self, int n=1, int dim=-1, Tensor? prepend=None, Tensor? append=None) -> Tensor"};
}  // namespace ops

/// The sum of the elements up to and with each one along `dim`. Integers and bool are summed as int64 unless a dtype is
/// given. Throws IndexError when `dim` is out of range.
inline Tensor cumsum(const Tensor& self, int64_t dim, std::optional<ScalarType> dtype = std::nullopt) {
  return ops::cumsum(self, dim, dtype);
}
/// The product, likewise.
inline Tensor cumprod(const Tensor& self, int64_t dim, std::optional<ScalarType> dtype = std::nullopt) {
  return ops::cumprod(self, dim, dtype);
}
/// (the largest element so far, where it is); of equal ones the last. NaN is larger than every number.
inline std::tuple<Tensor, Tensor> cummax(const Tensor& self, int64_t dim) { return ops::cummax(self, dim); }
/// (the smallest, where it is). NaN is smaller than every number.
inline std::tuple<Tensor, Tensor> cummin(const Tensor& self, int64_t dim) { return ops::cummin(self, dim); }
/// log(cumsum(exp(self))), without overflow. Throws NotImplementedError for integers.
inline Tensor logcumsumexp(const Tensor& self, int64_t dim) { return ops::logcumsumexp(self, dim); }
/// The n-th forward difference along `dim`, after putting `prepend` before and `append` behind. For bool: whether
/// neighbours differ. Throws ValueError for n < 0.
inline Tensor diff(const Tensor& self, int64_t n = 1, int64_t dim = -1,
                   const std::optional<Tensor>& prepend = std::nullopt,
                   const std::optional<Tensor>& append = std::nullopt) {
  return ops::diff(self, n, dim, prepend, append);
}

namespace kernels {
// Along the middle dimension of `shape`; both row-major. The output is int64 for integers and bool.
using ScanKernel = Kernel<void(const Tensor& output, const Tensor& input, const AlongDim& shape)>;
inline constinit ScanKernel cumsum{"cumsum"}, cumprod{"cumprod"}, logcumsumexp{"logcumsumexp"};
inline constinit Kernel<void(const Tensor& values, const Tensor& indices, const Tensor& input, const AlongDim& shape,
                             bool largest)>
    cumulative_extreme{"cummax"};
}  // namespace kernels

}  // namespace rush
