// Norms of vectors and matrices, and what is made of them.
#pragma once
#include "core/dispatch/kernel.h"
#include "core/dispatch/op.h"

namespace rush {

namespace ops {
inline constinit Op<Tensor(const Tensor&, const Scalar&, OptionalIntArrayRef, bool, std::optional<ScalarType>)>
    linalg_vector_norm{
        "aten::linalg_vector_norm(Tensor self, Scalar ord=2, int[1]? dim=None, bool keepdim=False, *, ScalarType? "
        "dtype=None) -> Tensor"};
inline constinit Op<Tensor(const Tensor&, const Scalar&)> norm{"aten::norm.Scalar(Tensor self, Scalar p=2) -> Tensor"};
inline constinit Op<Tensor(const Tensor&, const std::optional<Scalar>&, IntArrayRef, bool)> norm_dim{
    "aten::norm.ScalarOpt_dim(Tensor self, Scalar? p, int[1] dim, bool keepdim=False) -> Tensor"};
inline constinit Op<Tensor(const Tensor&, const std::optional<Scalar>&, ScalarType)> norm_dtype{
    "aten::norm.ScalarOpt_dtype(Tensor self, Scalar? p, *, ScalarType dtype) -> Tensor"};
inline constinit Op<Tensor(const Tensor&, const std::optional<Scalar>&, IntArrayRef, bool, ScalarType)> norm_dim_dtype{
    "aten::norm.ScalarOpt_dim_dtype(Tensor self, Scalar? p, int[1] dim, bool keepdim, *, ScalarType dtype) -> Tensor"};
inline constinit Op<Tensor(const Tensor&, const Tensor&, const Scalar&)> dist{
    "aten::dist(Tensor self, Tensor other, Scalar p=2) -> Tensor"};
inline constinit Op<Tensor(const Tensor&, const Scalar&, int64_t, const Scalar&)> renorm{
    "aten::renorm(Tensor self, Scalar p, int dim, Scalar maxnorm) -> Tensor"};
inline constinit Op<Tensor&(Tensor&, const Scalar&, int64_t, const Scalar&)> renorm_{
    "aten::renorm_(Tensor(a!) self, Scalar p, int dim, Scalar maxnorm) -> Tensor(a!)"};
}  // namespace ops

/// (sum |x|^ord)^(1/ord) over all dimensions or the given ones, as real numbers. ord 0 counts what is not zero, inf and
/// -inf give the largest and the smallest magnitude. `dtype` is cast to first. Throws TypeError for integers,
/// ValueError where a negative or infinite ord has no element to look at.
inline Tensor linalg_vector_norm(const Tensor& self, const Scalar& ord = 2, OptionalIntArrayRef dim = std::nullopt,
                                 bool keepdim = false, std::optional<ScalarType> dtype = std::nullopt) {
  return ops::linalg_vector_norm(self, ord, dim, keepdim, dtype);
}
/// The same under its older name; p defaults to 2.
inline Tensor norm(const Tensor& self, const Scalar& p = 2) { return ops::norm(self, p); }
inline Tensor norm(const Tensor& self, const std::optional<Scalar>& p, ScalarType dtype) {
  return ops::norm_dtype(self, p, dtype);
}
inline Tensor norm(const Tensor& self, const std::optional<Scalar>& p, IntArrayRef dim, bool keepdim = false) {
  return ops::norm_dim(self, p, dim, keepdim);
}
inline Tensor norm(const Tensor& self, const std::optional<Scalar>& p, IntArrayRef dim, bool keepdim,
                   ScalarType dtype) {
  return ops::norm_dim_dtype(self, p, dim, keepdim, dtype);
}
/// The p-norm of self - other.
inline Tensor dist(const Tensor& self, const Tensor& other, const Scalar& p = 2) { return ops::dist(self, other, p); }
/// Slices along `dim` whose p-norm is larger than `maxnorm` are scaled down to it. Throws ValueError for a negative
/// maxnorm, a p that is not positive, or fewer than two dimensions.
inline Tensor renorm(const Tensor& self, const Scalar& p, int64_t dim, const Scalar& maxnorm) {
  return ops::renorm(self, p, dim, maxnorm);
}

namespace kernels {
// The norm of `input` over `dims`, as kernels::sum takes them; the output is real.
inline constinit Kernel<void(const Tensor& output, const Tensor& input, IntArrayRef dims, double ord)> vector_norm{
    "linalg_vector_norm"};
}  // namespace kernels

}  // namespace rush
