// Linear algebra: equations, inverses and decompositions of matrices.
// https://pytorch.org/docs/stable/linalg.html
#pragma once
#include "core/dispatch/kernel.h"
#include "core/dispatch/op.h"
#include "core/ops/linalg/lu.h"

namespace rush {

namespace ops {
inline constinit Op<Tensor(const Tensor&)> linalg_inv{"aten::linalg_inv(Tensor A) -> Tensor"};
inline constinit Op<Tensor(const Tensor&, const Tensor&, bool)> linalg_solve{
    "aten::linalg_solve(Tensor A, Tensor B, *, bool left=True) -> Tensor"};
inline constinit Op<Tensor(const Tensor&, const Tensor&, bool, bool, bool)> linalg_solve_triangular{
    "aten::linalg_solve_triangular(Tensor self, Tensor B, *, bool upper, bool left=True, bool unitriangular=False) -> "
    "Tensor"};
inline constinit Op<Tensor(const Tensor&, bool)> linalg_cholesky{
    "aten::linalg_cholesky(Tensor self, *, bool upper=False) -> Tensor"};
inline constinit Op<std::tuple<Tensor, Tensor>(const Tensor&, std::string_view)> linalg_qr{
    "aten::linalg_qr(Tensor A, str mode=\"reduced\") -> (Tensor Q, Tensor R)"};
inline constinit Op<std::tuple<Tensor, Tensor>(const Tensor&, std::string_view)> linalg_eigh{
    "aten::linalg_eigh(Tensor self, str UPLO=\"L\") -> (Tensor eigenvalues, Tensor eigenvectors)"};
inline constinit Op<Tensor(const Tensor&, std::string_view)> linalg_eigvalsh{
    "aten::linalg_eigvalsh(Tensor self, str UPLO=\"L\") -> Tensor"};
inline constinit Op<std::tuple<Tensor, Tensor>(const Tensor&)> linalg_eig{
    "aten::linalg_eig(Tensor self) -> (Tensor eigenvalues, Tensor eigenvectors)"};
inline constinit Op<Tensor(const Tensor&)> linalg_eigvals{"aten::linalg_eigvals(Tensor self) -> Tensor"};
inline constinit Op<std::tuple<Tensor, Tensor, Tensor>(const Tensor&, bool, std::optional<std::string_view>)>
    linalg_svd{
        "aten::linalg_svd(Tensor A, bool full_matrices=True, *, str? driver=None) -> (Tensor U, Tensor S, Tensor Vh)"};
inline constinit Op<std::tuple<Tensor, Tensor, Tensor>(const Tensor&, bool, bool, std::optional<std::string_view>)>
    _linalg_svd{
        "aten::_linalg_svd(Tensor A, bool full_matrices=False, bool compute_uv=True, *, str? driver=None) -> (Tensor "
        "U, Tensor S, Tensor Vh)"};
inline constinit Op<Tensor(const Tensor&, std::optional<std::string_view>)> linalg_svdvals{
    "aten::linalg_svdvals(Tensor A, *, str? driver=None) -> Tensor"};
inline constinit Op<Tensor(const Tensor&, const Scalar&, IntArrayRef, bool, std::optional<ScalarType>)>
    linalg_matrix_norm{
        "aten::linalg_matrix_norm(Tensor self, Scalar ord, int[] dim=[-2, -1], bool keepdim=False, *, ScalarType? "
        "dtype=None) -> Tensor"};
inline constinit Op<Tensor(const Tensor&, std::string_view, IntArrayRef, bool, std::optional<ScalarType>)>
    linalg_matrix_norm_str_ord{
        "aten::linalg_matrix_norm.str_ord(Tensor self, str ord=\"fro\", int[] dim=[-2, -1], bool keepdim=False, *, "
        "ScalarType? dtype=None) -> Tensor"};
inline constinit Op<Tensor(const Tensor&, const std::optional<Scalar>&, OptionalIntArrayRef, bool,
                           std::optional<ScalarType>)>
    linalg_norm{
        "aten::linalg_norm(Tensor self, Scalar? ord=None, int[1]? dim=None, bool keepdim=False, *, ScalarType? "
        "dtype=None) -> Tensor"};
inline constinit Op<Tensor(const Tensor&, std::string_view, OptionalIntArrayRef, bool, std::optional<ScalarType>)>
    linalg_norm_ord_str{
        "aten::linalg_norm.ord_str(Tensor self, str ord, int[1]? dim=None, bool keepdim=False, *, ScalarType? "
        "dtype=None) -> Tensor"};
}  // namespace ops

// All of these take batches of matrices (..., n, m) of float32, float64, complex64 or complex128. They throw ValueError
// on shapes that do not fit, TypeError on other dtypes, and LinAlgError, naming the first such matrix of the batch,
// where a matrix is singular, not positive definite, or an iteration does not converge.

// (..., n, n) -> (..., n, n).
inline Tensor linalg_inv(const Tensor& A) { return ops::linalg_inv(A); }
inline Tensor inverse(const Tensor& self) { return ops::linalg_inv(self); }
// X of A X = B, or X A = B unless `left`. B is (..., n, k), or a vector (n) or a batch of vectors (..., n) for A (...,
// n, n); batches broadcast.
inline Tensor linalg_solve(const Tensor& A, const Tensor& B, bool left = true) { return ops::linalg_solve(A, B, left); }
// The same for a triangular A, of which only the `upper` or lower triangle is read; `unitriangular` takes its diagonal
// for ones. Never singular: a zero on the diagonal gives infinities.
inline Tensor linalg_solve_triangular(const Tensor& A, const Tensor& B, bool upper, bool left = true,
                                      bool unitriangular = false) {
  return ops::linalg_solve_triangular(A, B, upper, left, unitriangular);
}
// The lower triangular L of A = L L^H, or the upper L^H; of the positive definite A only that triangle is read.
inline Tensor linalg_cholesky(const Tensor& self, bool upper = false) { return ops::linalg_cholesky(self, upper); }
// A = Q R with orthonormal columns of Q and upper triangular R. A (..., n, m), k = min(n, m): with mode "reduced" Q
// (..., n, k), R (..., k, m); with "complete" Q (..., n, n), R (..., n, m); with "r" R as reduced and an empty Q.
inline std::tuple<Tensor, Tensor> linalg_qr(const Tensor& A, std::string_view mode = "reduced") {
  return ops::linalg_qr(A, mode);
}
// A = V diag(w) V^H of a Hermitian A, whose lower (UPLO "L") or upper ("U") triangle is read: w (..., n) ascending, V
// (..., n, n) orthonormal columns.
inline std::tuple<Tensor, Tensor> linalg_eigh(const Tensor& self, std::string_view UPLO = "L") {
  return ops::linalg_eigh(self, UPLO);
}
// The eigenvalues alone.
inline Tensor linalg_eigvalsh(const Tensor& self, std::string_view UPLO = "L") {
  return ops::linalg_eigvalsh(self, UPLO);
}
/// A V = V diag(w) of any square matrix: complex w (..., n) in no particular order, V (..., n, n) of columns of length
/// one, each unique up to a complex phase. A function of V has a derivative where it does not depend on the phases.
/// Throws ValueError if an element is not finite. https://pytorch.org/docs/stable/generated/torch.linalg.eig.html
inline std::tuple<Tensor, Tensor> linalg_eig(const Tensor& self) { return ops::linalg_eig(self); }
/// The eigenvalues alone.
inline Tensor linalg_eigvals(const Tensor& self) { return ops::linalg_eigvals(self); }
// A = U diag(S) Vh, S descending. A (..., n, m), k = min(n, m): U (..., n, k), S (..., k), Vh (..., k, m), or with
// full_matrices U (..., n, n) and Vh (..., m, m). A `driver` is for CUDA alone. Throws LinAlgError if an element is not
// finite.
inline std::tuple<Tensor, Tensor, Tensor> linalg_svd(const Tensor& A, bool full_matrices = true,
                                                     std::optional<std::string_view> driver = std::nullopt) {
  return ops::linalg_svd(A, full_matrices, driver);
}
// The singular values alone.
inline Tensor linalg_svdvals(const Tensor& A, std::optional<std::string_view> driver = std::nullopt) {
  return ops::linalg_svdvals(A, driver);
}
// A norm of the matrices in dimensions `dim`: "fro" sqrt(sum |a|^2), "nuc" the sum of singular values, 1 and -1 the
// largest and smallest column sum of |a|, inf and -inf of row sums, 2 and -2 the largest and smallest singular value.
inline Tensor linalg_matrix_norm(const Tensor& self, const Scalar& ord, IntArrayRef dim = {-2, -1},
                                 bool keepdim = false, std::optional<ScalarType> dtype = std::nullopt) {
  return ops::linalg_matrix_norm(self, ord, dim, keepdim, dtype);
}
template <Text Name = std::string_view>
Tensor linalg_matrix_norm(const Tensor& self, const Name& ord = "fro", IntArrayRef dim = {-2, -1}, bool keepdim = false,
                          std::optional<ScalarType> dtype = std::nullopt) {
  return ops::linalg_matrix_norm_str_ord(self, ord, dim, keepdim, dtype);
}
// The vector norm over one dimension, or over all without `ord`; the matrix norm over two.
inline Tensor linalg_norm(const Tensor& self, const std::optional<Scalar>& ord = std::nullopt,
                          OptionalIntArrayRef dim = std::nullopt, bool keepdim = false,
                          std::optional<ScalarType> dtype = std::nullopt) {
  return ops::linalg_norm(self, ord, dim, keepdim, dtype);
}
template <Text Name>
Tensor linalg_norm(const Tensor& self, const Name& ord, OptionalIntArrayRef dim = std::nullopt, bool keepdim = false,
                   std::optional<ScalarType> dtype = std::nullopt) {
  return ops::linalg_norm_ord_str(self, ord, dim, keepdim, dtype);
}

namespace kernels {
// All tensors are row-major and start with one batch dimension. `info` (B), int32, is set to 0 for each matrix, or to
// another number where the computation fails.
inline constinit Kernel<void(const Tensor& inverse, const Tensor& a, const Tensor& info)> linalg_inv{"linalg_inv"};
inline constinit Kernel<void(const Tensor& x, const Tensor& a, const Tensor& b, const Tensor& info)> linalg_solve{
    "linalg_solve"};
inline constinit Kernel<void(const Tensor& x, const Tensor& a, const Tensor& b, bool upper, bool unit)>
    linalg_solve_triangular{"linalg_solve_triangular"};
// The lower factor; the lower triangle of `a` is read.
inline constinit Kernel<void(const Tensor& factor, const Tensor& a, const Tensor& info)> linalg_cholesky{
    "linalg_cholesky"};
// q has as many columns as r has rows; an undefined q is not computed.
inline constinit Kernel<void(const Tensor& q, const Tensor& r, const Tensor& a)> linalg_qr{"linalg_qr"};
// The lower triangle of `a` is read.
inline constinit Kernel<void(const Tensor& values, const Tensor& vectors, const Tensor& a, const Tensor& info)>
    linalg_eigh{"linalg_eigh"};
// Both results are complex.
inline constinit Kernel<void(const Tensor& values, const Tensor& vectors, const Tensor& a, const Tensor& info)>
    linalg_eig{"linalg_eig"};
// u and vh as their shapes ask, thin or full. On the CPU both may be undefined: only s is wanted.
inline constinit Kernel<void(const Tensor& u, const Tensor& s, const Tensor& vh, const Tensor& a, const Tensor& info)>
    linalg_svd{"linalg_svd"};
}  // namespace kernels

}  // namespace rush
