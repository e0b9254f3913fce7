// Linear algebra that decompositions and products make; and names that ATen had before torch.linalg.
#pragma once
#include "ATen/operators/view_copies.h"

namespace rush {
inline namespace aten {

// ---- products ----
inline Tensor linalg_matmul(const Tensor& self, const Tensor& other) { return self.matmul(other); }
/// The sum of conj(x) y along `dim`, after broadcasting.
Tensor linalg_vecdot(const Tensor& x, const Tensor& y, int64_t dim = -1);
Tensor linalg_diagonal(const Tensor& A, int64_t offset = 0, int64_t dim1 = -2, int64_t dim2 = -1);
/// The n-th power of square matrices by repeated squaring; of the inverse where n is negative.
Tensor linalg_matrix_power(const Tensor& self, int64_t n);
inline Tensor matrix_power(const Tensor& self, int64_t n) { return linalg_matrix_power(self, n); }

/// The product of matrices, of which the first may be a row and the last a column, given as vectors.
Tensor linalg_multi_dot(TensorList tensors);
Tensor chain_matmul(TensorList matrices);
/// The Kronecker product: a tensor of blocks self[i, j, ...] * other.
Tensor kron(const Tensor& self, const Tensor& other);
/// (..., n) -> (..., n, N), the powers x^0, x^1, ..., x^(N - 1).
Tensor linalg_vander(const Tensor& x, std::optional<int64_t> N = std::nullopt);
/// The same of a vector, with falling powers unless `increasing`.
Tensor vander(const Tensor& x, std::optional<int64_t> N = std::nullopt, bool increasing = false);

// ---- solutions and inverses that tell which matrices are singular ----
/// (the result, the info of linalg_lu_factor_ex): a singular matrix throws with `check_errors` only.
std::tuple<Tensor, Tensor> linalg_solve_ex(const Tensor& A, const Tensor& B, bool left = true,
                                           bool check_errors = false);
std::tuple<Tensor, Tensor> linalg_inv_ex(const Tensor& A, bool check_errors = false);

// ---- norms and ranks ----
Tensor nuclear_norm(const Tensor& self, IntArrayRef dim, bool keepdim = false);
Tensor nuclear_norm(const Tensor& self, bool keepdim = false);
Tensor frobenius_norm(const Tensor& self, IntArrayRef dim, bool keepdim = false);
/// The sum of |x|^ord.
Tensor linalg__powsum(const Tensor& self, const Scalar& ord = 2, OptionalIntArrayRef dim = std::nullopt,
                      bool keepdim = false, std::optional<ScalarType> dtype = std::nullopt);
inline Tensor native_norm(const Tensor& self, const Scalar& p = 2) { return norm(self, p); }
Tensor native_norm(const Tensor& self, const std::optional<Scalar>& p, IntArrayRef dim, bool keepdim,
                   std::optional<ScalarType> dtype);
/// The norm of a matrix times that of its inverse, infinite for a singular one; by default, and for p 2 and -2, from
/// singular values.
Tensor linalg_cond(const Tensor& self, const std::optional<Scalar>& p = std::nullopt);
Tensor linalg_cond(const Tensor& self, std::string_view p);
/// How many singular values (absolute eigenvalues where `hermitian`) are above max(atol, rtol * the largest). `rtol`
/// is by default the larger size times the dtype's epsilon, 0 where a positive atol is given.
Tensor linalg_matrix_rank(const Tensor& input, const std::optional<Tensor>& atol = {},
                          const std::optional<Tensor>& rtol = {}, bool hermitian = false);
Tensor linalg_matrix_rank(const Tensor& self, std::optional<double> atol, std::optional<double> rtol,
                          bool hermitian = false);
inline Tensor linalg_matrix_rank(const Tensor& self, double tol, TruthValue auto hermitian) {
  return linalg_matrix_rank(self, std::optional(tol), std::optional(0.0), hermitian);
}
inline Tensor linalg_matrix_rank(const Tensor& self, double tol) { return linalg_matrix_rank(self, tol, false); }
inline Tensor linalg_matrix_rank(const Tensor& input, const Tensor& tol, TruthValue auto hermitian) {
  return linalg_matrix_rank(input, std::optional(tol), std::optional(zeros_like(tol)), hermitian);
}
Tensor linalg_matrix_rank(const Tensor& input, const Tensor& tol);

// ---- decompositions and systems of equations ----
inline Tensor cholesky(const Tensor& self, bool upper = false) { return linalg_cholesky(self, upper); }
/// (the factor, the size of the first leading block of each matrix that is not positive definite, or 0). Throws for
/// such a block only with `check_errors`; the matrix's factor is NaN otherwise.
std::tuple<Tensor, Tensor> linalg_cholesky_ex(const Tensor& self, bool upper = false, bool check_errors = false);
/// X of A X = B, from the Cholesky factor of A.
Tensor cholesky_solve(const Tensor& self, const Tensor& input2, bool upper = false);
Tensor cholesky_inverse(const Tensor& self, bool upper = false);
std::tuple<Tensor, Tensor> qr(const Tensor& self, bool some = true);
/// (U, S, V) with V rather than its conjugate transpose; without `compute_uv`, U and V are zeros.
std::tuple<Tensor, Tensor, Tensor> svd(const Tensor& self, bool some = true, bool compute_uv = true);
/// (X of A X = self, a copy of A), for a triangular A or its transpose.
std::tuple<Tensor, Tensor> triangular_solve(const Tensor& self, const Tensor& A, bool upper = true,
                                            bool transpose = false, bool unitriangular = false);
/// The X of the tensor equation self X = other, whose products and sums are tensordot's: self's dimensions `dims` are
/// moved to the end first. The sizes of self's first other.dim() dimensions multiply to those of the rest.
Tensor linalg_tensorsolve(const Tensor& self, const Tensor& other, OptionalIntArrayRef dims = std::nullopt);
/// Its inverse: of a tensor whose first `ind` sizes multiply to what the others do.
Tensor linalg_tensorinv(const Tensor& self, int64_t ind = 2);

/// (reflectors, tau) of A = Q R, where R stands on and above the diagonal of the reflectors. As in LAPACK, the diagonal
/// of R has the opposite sign of what a column had there; a column without a tail has no reflector: tau is 0.
std::tuple<Tensor, Tensor> geqrf(const Tensor& self);
/// The first n columns of Q, for `input` (..., m, n).
Tensor linalg_householder_product(const Tensor& input, const Tensor& tau);
/// Q C, or C Q unless `left`, with Q^H for Q if `transpose`; C is `input3`, tau `input2`.
Tensor ormqr(const Tensor& self, const Tensor& input2, const Tensor& input3, bool left = true, bool transpose = false);
inline Tensor orgqr(const Tensor& self, const Tensor& input2) { return linalg_householder_product(self, input2); }

}  // namespace aten
}  // namespace rush
