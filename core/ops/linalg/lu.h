// LU decompositions and what is computed from them: determinants and equations.
#pragma once
#include "core/dispatch/kernel.h"
#include "core/dispatch/op.h"

namespace rush {

namespace ops {
inline constinit Op<Tensor(const Tensor&)> linalg_det{"aten::linalg_det(Tensor A) -> Tensor"};
inline constinit Op<std::tuple<Tensor, Tensor>(const Tensor&)> linalg_slogdet{
    "aten::linalg_slogdet(Tensor A) -> (Tensor sign, Tensor logabsdet)"};
inline constinit Op<std::tuple<Tensor, Tensor>(const Tensor&)> slogdet{
    "aten::slogdet(Tensor self) -> (Tensor sign, Tensor logabsdet)"};
inline constinit Op<Tensor(const Tensor&)> logdet{"aten::logdet(Tensor self) -> Tensor"};
inline constinit Op<std::tuple<Tensor, Tensor, Tensor>(const Tensor&, bool, bool)> linalg_lu_factor_ex{
    "aten::linalg_lu_factor_ex(Tensor A, *, bool pivot=True, bool check_errors=False) -> (Tensor LU, Tensor pivots, "
    "Tensor info)"};
inline constinit Op<std::tuple<Tensor, Tensor>(const Tensor&, bool)> linalg_lu_factor{
    "aten::linalg_lu_factor(Tensor A, *, bool pivot=True) -> (Tensor LU, Tensor pivots)"};
inline constinit Op<std::tuple<Tensor, Tensor, Tensor>(const Tensor&, const Tensor&, bool, bool)> lu_unpack{
    "aten::lu_unpack(Tensor LU_data, Tensor LU_pivots, bool unpack_data=True, bool unpack_pivots=True) -> (Tensor P, "
    "Tensor L, Tensor U)"};
inline constinit Op<std::tuple<Tensor, Tensor, Tensor>(const Tensor&, bool)> linalg_lu{
    "aten::linalg_lu(Tensor A, *, bool pivot=True) -> (Tensor P, Tensor L, Tensor U)"};
inline constinit Op<Tensor(const Tensor&, const Tensor&, const Tensor&, bool, bool)> linalg_lu_solve{
    "aten::linalg_lu_solve(Tensor LU, Tensor pivots, Tensor B, *, bool left=True, bool adjoint=False) -> Tensor"};
inline constinit Op<Tensor(const Tensor&, const Tensor&, const Tensor&)> lu_solve{
    "aten::lu_solve(Tensor self, Tensor LU_data, Tensor LU_pivots) -> Tensor"};
}  // namespace ops

// Batches of matrices and errors are those of core/ops/linalg/linalg.h.

// (..., n, n) -> (...).
inline Tensor linalg_det(const Tensor& A) { return ops::linalg_det(A); }
inline Tensor det(const Tensor& self) { return ops::linalg_det(self); }
/// The determinant of (..., n, n) as sign (...), of absolute value 1, and the logarithm of its absolute value, which is
/// real: neither overflows. 0 and -infinity for a singular matrix.
/// https://pytorch.org/docs/stable/generated/torch.linalg.slogdet.html
inline std::tuple<Tensor, Tensor> linalg_slogdet(const Tensor& A) { return ops::linalg_slogdet(A); }
inline std::tuple<Tensor, Tensor> slogdet(const Tensor& self) { return ops::slogdet(self); }
/// The logarithm of the determinant: NaN where a real one is negative.
inline Tensor logdet(const Tensor& self) { return ops::logdet(self); }

/// A = P L U of A (..., n, m), k = min(n, m): LU (..., n, m) holds U in its upper triangle and below it L, whose
/// diagonal of ones is left out. Row i was exchanged with row pivots[i] - 1, in turn; pivots (..., k) are int32.
/// Without `pivot` no rows are. Throws LinAlgError where U has a zero on its diagonal.
/// https://pytorch.org/docs/stable/generated/torch.linalg.lu_factor.html
inline std::tuple<Tensor, Tensor> linalg_lu_factor(const Tensor& A, bool pivot = true) {
  return ops::linalg_lu_factor(A, pivot);
}
/// The same with `info` (...), int32: the number, from one, of the first zero on U's diagonal, or 0. Throws LinAlgError
/// for one only when asked to `check_errors`.
inline std::tuple<Tensor, Tensor, Tensor> linalg_lu_factor_ex(const Tensor& A, bool pivot = true,
                                                              bool check_errors = false) {
  return ops::linalg_lu_factor_ex(A, pivot, check_errors);
}
/// P (..., n, n), L (..., n, k) and U (..., k, m) of linalg_lu_factor's results; what is not asked for is empty. Throws
/// ValueError for pivots that are no numbers of rows.
inline std::tuple<Tensor, Tensor, Tensor> lu_unpack(const Tensor& LU_data, const Tensor& LU_pivots,
                                                    bool unpack_data = true, bool unpack_pivots = true) {
  return ops::lu_unpack(LU_data, LU_pivots, unpack_data, unpack_pivots);
}
/// P, L and U of A = P L U; of a singular matrix, too.
inline std::tuple<Tensor, Tensor, Tensor> linalg_lu(const Tensor& A, bool pivot = true) {
  return ops::linalg_lu(A, pivot);
}
/// X of A X = B, or X A = B unless `left`, with A^H for A if `adjoint`, from A's linalg_lu_factor. B is (..., n, k) for
/// LU (..., n, n); batches broadcast.
/// https://pytorch.org/docs/stable/generated/torch.linalg.lu_solve.html
inline Tensor linalg_lu_solve(const Tensor& LU, const Tensor& pivots, const Tensor& B, bool left = true,
                              bool adjoint = false) {
  return ops::linalg_lu_solve(LU, pivots, B, left, adjoint);
}
inline Tensor lu_solve(const Tensor& self, const Tensor& LU_data, const Tensor& LU_pivots) {
  return ops::lu_solve(self, LU_data, LU_pivots);
}

namespace kernels {
// Tensors as in core/ops/linalg/linalg.h: lu and a (B, n, m), pivots (B, k) of int32, written only when `pivot`.
inline constinit Kernel<void(const Tensor& lu, const Tensor& pivots, const Tensor& a, bool pivot, const Tensor& info)>
    linalg_lu_factor{"linalg_lu_factor"};
// The determinants (B), for devices that have it: of small matrices it takes less than the products of LU factors.
inline constinit Kernel<void(const Tensor& det, const Tensor& a)> linalg_det{"linalg_det"};
// order (B, n), int64: the row of A that each row of P^T A is. pivots (B, k), int32, are between 1 and n.
inline constinit Kernel<void(const Tensor& order, const Tensor& pivots)> pivots_to_permutation{"pivots_to_permutation"};
}  // namespace kernels

}  // namespace rush
