// Products of matrices and vectors.
#pragma once
#include "core/dispatch/kernel.h"
#include "core/dispatch/op.h"
#include "core/ops/reduce/along_dim.h"

namespace rush {

using ProductOp = Op<Tensor(const Tensor&, const Tensor&)>;
using AddProductOp = Op<Tensor(const Tensor&, const Tensor&, const Tensor&, const Scalar&, const Scalar&)>;
using AddProductInplaceOp = Op<Tensor&(Tensor&, const Tensor&, const Tensor&, const Scalar&, const Scalar&)>;

namespace ops {
inline constinit ProductOp mm{"aten::mm(Tensor self, Tensor mat2) -> Tensor"};
inline constinit ProductOp bmm{"aten::bmm(Tensor self, Tensor mat2) -> Tensor"};
inline constinit ProductOp mv{"aten::mv(Tensor self, Tensor vec) -> Tensor"};
inline constinit ProductOp dot{"aten::dot(Tensor self, Tensor tensor) -> Tensor"};
inline constinit ProductOp vdot{"aten::vdot(Tensor self, Tensor other) -> Tensor"};
inline constinit ProductOp outer{"aten::outer(Tensor self, Tensor vec2) -> Tensor"};
inline constinit ProductOp ger{"aten::ger(Tensor self, Tensor vec2) -> Tensor"};
inline constinit ProductOp inner{"aten::inner(Tensor self, Tensor other) -> Tensor"};
inline constinit ProductOp matmul{"aten::matmul(Tensor self, Tensor other) -> Tensor"};
inline constinit Op<Tensor(const Tensor&, const Tensor&, IntArrayRef, IntArrayRef)> tensordot{
    "aten::tensordot(Tensor self, Tensor other, int[] dims_self, int[] dims_other) -> Tensor"};

inline constinit Op<Tensor(const Tensor&, const Tensor&, int64_t)> linalg_cross{
    "aten::linalg_cross(Tensor self, Tensor other, *, int dim=-1) -> Tensor"};
inline constinit Op<Tensor(const Tensor&, const Tensor&, std::optional<int64_t>)> cross{
    "aten::cross(Tensor self, Tensor other, int? dim=None) -> Tensor"};

inline constinit AddProductOp addmm{
    "aten::addmm(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1) -> Tensor"};
inline constinit AddProductInplaceOp addmm_{
    "aten::addmm_(Tensor(a!) self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1) -> Tensor(a!)"};
inline constinit AddProductOp addmv{
    "aten::addmv(Tensor self, Tensor mat, Tensor vec, *, Scalar beta=1, Scalar alpha=1) -> Tensor"};
inline constinit AddProductInplaceOp addmv_{
    "aten::addmv_(Tensor(a!) self, Tensor mat, Tensor vec, *, Scalar beta=1, Scalar alpha=1) -> Tensor(a!)"};
inline constinit AddProductOp baddbmm{
    "aten::baddbmm(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1) -> Tensor"};
inline constinit AddProductInplaceOp baddbmm_{
    "aten::baddbmm_(Tensor(a!) self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1) -> Tensor(a!)"};
inline constinit AddProductOp addbmm{
    "aten::addbmm(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1) -> Tensor"};
inline constinit AddProductInplaceOp addbmm_{
    "aten::addbmm_(Tensor(a!) self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1) -> Tensor(a!)"};
inline constinit AddProductOp addr{
    "aten::addr(Tensor self, Tensor vec1, Tensor vec2, *, Scalar beta=1, Scalar alpha=1) -> Tensor"};
inline constinit AddProductInplaceOp addr_{
    "aten::addr_(Tensor(a!) self, Tensor vec1, Tensor vec2, *, Scalar beta=1, Scalar alpha=1) -> Tensor(a!)"};
}  // namespace ops

// Every product here throws ValueError on shapes that do not fit and TypeError when the dtypes differ.

/// (n, k) x (k, m) -> (n, m).
inline Tensor mm(const Tensor& self, const Tensor& mat2) { return ops::mm(self, mat2); }
/// A product for each matrix of a batch: (B, n, k) x (B, k, m) -> (B, n, m).
inline Tensor bmm(const Tensor& self, const Tensor& mat2) { return ops::bmm(self, mat2); }
/// (n, k) x (k) -> (n).
inline Tensor mv(const Tensor& self, const Tensor& vec) { return ops::mv(self, vec); }
/// The sum of products of two vectors: (k), (k) -> ().
inline Tensor dot(const Tensor& self, const Tensor& tensor) { return ops::dot(self, tensor); }
/// dot(conj(self), other).
inline Tensor vdot(const Tensor& self, const Tensor& other) { return ops::vdot(self, other); }
/// self_i vec2_j: (n), (m) -> (n, m). Promotes.
inline Tensor outer(const Tensor& self, const Tensor& vec2) { return ops::outer(self, vec2); }
inline Tensor ger(const Tensor& self, const Tensor& vec2) { return ops::ger(self, vec2); }
/// Sums products over the last dimension of both: (..., k), (*, k) -> (..., *); a number multiplies.
inline Tensor inner(const Tensor& self, const Tensor& other) { return ops::inner(self, other); }
/// The product that the dimensions ask for: dot, mv, mm, or a batch of them whose leading dimensions broadcast.
/// https://pytorch.org/docs/stable/generated/torch.matmul.html
inline Tensor matmul(const Tensor& self, const Tensor& other) { return ops::matmul(self, other); }
/// Sums products over the given dimensions, paired in order. self's other dimensions come before those of `other`.
inline Tensor tensordot(const Tensor& self, const Tensor& other, IntArrayRef dims_self, IntArrayRef dims_other) {
  return ops::tensordot(self, other, dims_self, dims_other);
}

/// The vectors at right angles to those that lie along `dim`, whose size is 3; all other dimensions broadcast. In
/// `cross` a missing `dim` is the first of size 3. https://pytorch.org/docs/stable/generated/torch.linalg.cross.html
inline Tensor linalg_cross(const Tensor& self, const Tensor& other, int64_t dim = -1) {
  return ops::linalg_cross(self, other, dim);
}
inline Tensor cross(const Tensor& self, const Tensor& other, std::optional<int64_t> dim = std::nullopt) {
  return ops::cross(self, other, dim);
}

// In the following, with beta 0 self is not read: its NaN and infinities do not matter. For integers, beta and alpha
// are cut to integers.

/// beta self + alpha mat1 mat2; self broadcasts to (n, m).
inline Tensor addmm(const Tensor& self, const Tensor& mat1, const Tensor& mat2, const Scalar& beta = 1,
                    const Scalar& alpha = 1) {
  return ops::addmm(self, mat1, mat2, beta, alpha);
}
/// beta self + alpha mat vec; self broadcasts to (n).
inline Tensor addmv(const Tensor& self, const Tensor& mat, const Tensor& vec, const Scalar& beta = 1,
                    const Scalar& alpha = 1) {
  return ops::addmv(self, mat, vec, beta, alpha);
}
inline Tensor& addmv_(Tensor& self, const Tensor& mat, const Tensor& vec, const Scalar& beta = 1,
                      const Scalar& alpha = 1) {
  return ops::addmv_(self, mat, vec, beta, alpha);
}
/// beta self + alpha batch1 batch2, for each matrix; self broadcasts to (B, n, m).
inline Tensor baddbmm(const Tensor& self, const Tensor& batch1, const Tensor& batch2, const Scalar& beta = 1,
                      const Scalar& alpha = 1) {
  return ops::baddbmm(self, batch1, batch2, beta, alpha);
}
/// beta self + alpha times the sum of the batch's products; self broadcasts to (n, m).
inline Tensor addbmm(const Tensor& self, const Tensor& batch1, const Tensor& batch2, const Scalar& beta = 1,
                     const Scalar& alpha = 1) {
  return ops::addbmm(self, batch1, batch2, beta, alpha);
}
/// beta self + alpha outer(vec1, vec2); self broadcasts to (n, m).
inline Tensor addr(const Tensor& self, const Tensor& vec1, const Tensor& vec2, const Scalar& beta = 1,
                   const Scalar& alpha = 1) {
  return ops::addr(self, vec1, vec2, beta, alpha);
}

namespace kernels {
// c = beta * c + alpha * a b, for each matrix of a batch: (B, n, k) x (B, k, m) -> (B, n, m). Any strides; elements of
// c do not overlap. With beta 0, c need not be initialised.
inline constinit Kernel<void(const Tensor& c, const Tensor& a, const Tensor& b, const Scalar& beta,
                             const Scalar& alpha)>
    gemm{"gemm"};
// c = a b + bias, likewise, for a batch of one and a bias (m) without gaps.
inline constinit Kernel<void(const Tensor& c, const Tensor& a, const Tensor& b, const Tensor& bias)> gemm_bias{
    "gemm_bias"};
// out = a x b along the middle dimension, of size 3, of row-major tensors of one dtype that are seen as `shape`.
inline constinit Kernel<void(const Tensor& out, const Tensor& a, const Tensor& b, const AlongDim& shape)> cross{
    "linalg_cross"};
}  // namespace kernels

}  // namespace rush
