// Triangles and diagonals of matrices.
#pragma once
#include "core/dispatch/kernel.h"
#include "core/ops/factory/factories.h"

namespace rush {

using TriangleOp = Op<Tensor(const Tensor&, int64_t)>;
using TriangleIndicesOp = Op<Tensor(int64_t, int64_t, int64_t, RUSH_FACTORY_ARGS)>;

namespace ops {
inline constinit TriangleOp tril{"aten::tril(Tensor self, SymInt diagonal=0) -> Tensor"};
inline constinit TriangleOp triu{"aten::triu(Tensor self, SymInt diagonal=0) -> Tensor"};
inline constinit Op<Tensor&(Tensor&, int64_t)> tril_{"aten::tril_(Tensor(a!) self, SymInt diagonal=0) -> Tensor(a!)"};
inline constinit Op<Tensor&(Tensor&, int64_t)> triu_{"aten::triu_(Tensor(a!) self, SymInt diagonal=0) -> Tensor(a!)"};
inline constinit TriangleIndicesOp tril_indices{
    "aten::tril_indices(int row, int col, int offset=0, *, ScalarType? dtype=4, Layout? layout=None, Device? "
    "device=None, bool? pin_memory=None) -> Tensor"};
inline constinit TriangleIndicesOp triu_indices{
    "aten::triu_indices(int row, int col, int offset=0, *, ScalarType? dtype=4, Layout? layout=None, Device? "
    "device=None, bool? pin_memory=None) -> Tensor"};
inline constinit TriangleOp diag{"aten::diag(Tensor self, int diagonal=0) -> Tensor"};
inline constinit TriangleOp diagflat{"aten::diagflat(Tensor self, int offset=0) -> Tensor"};
inline constinit Op<Tensor(const Tensor&, int64_t, int64_t, int64_t)> diag_embed{
    "aten::diag_embed(Tensor self, int offset=0, int dim1=-2, int dim2=-1) -> Tensor"};
}  // namespace ops

/// The lower triangle of each matrix (the last two dimensions), up to and with the given diagonal: elements (i, j) with
/// j - i <= diagonal. The rest is zero.
inline Tensor tril(const Tensor& self, int64_t diagonal = 0) { return ops::tril(self, diagonal); }
/// The upper triangle: j - i >= diagonal.
inline Tensor triu(const Tensor& self, int64_t diagonal = 0) { return ops::triu(self, diagonal); }
/// The positions (2, n) of a triangle's elements in a (row, col) matrix, row by row.
Tensor tril_indices(int64_t row, int64_t col, int64_t offset = 0, const TensorOptions& options = kInt64);
Tensor triu_indices(int64_t row, int64_t col, int64_t offset = 0, const TensorOptions& options = kInt64);
/// For a vector, the square matrix with it on a diagonal; for a matrix, a copy of its diagonal.
inline Tensor diag(const Tensor& self, int64_t diagonal = 0) { return ops::diag(self, diagonal); }
/// All elements of `self` on a diagonal.
inline Tensor diagflat(const Tensor& self, int64_t offset = 0) { return ops::diagflat(self, offset); }
/// The last dimension on a diagonal of two new dimensions dim1, dim2 of the result; zeros elsewhere.
inline Tensor diag_embed(const Tensor& self, int64_t offset = 0, int64_t dim1 = -2, int64_t dim2 = -1) {
  return ops::diag_embed(self, offset, dim1, dim2);
}

namespace kernels {
// A triangle of each matrix of `in`, of the same shape, into `out`, which may be `in`.
inline constinit Kernel<void(const Tensor& out, const Tensor& in, int64_t diagonal, bool upper)> triangle{"triangle"};
// The rows and columns (2, n) of a triangle's elements, contiguous.
inline constinit Kernel<void(const Tensor& out, int64_t columns, int64_t offset, bool upper)> triangle_indices{
    "triangle_indices"};
}  // namespace kernels

}  // namespace rush
