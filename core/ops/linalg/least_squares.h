// Pseudoinverses, least squares and exponentials of matrices.
#pragma once
#include "core/dispatch/op.h"

namespace rush {

namespace ops {
inline constinit Op<Tensor(const Tensor&, const std::optional<Tensor>&, const std::optional<Tensor>&, bool)>
    linalg_pinv_atol_rtol_tensor{
        "aten::linalg_pinv.atol_rtol_tensor(Tensor self, *, Tensor? atol=None, Tensor? rtol=None, bool "
        "hermitian=False) -> Tensor"};
inline constinit Op<Tensor(const Tensor&, std::optional<double>, std::optional<double>, bool)>
    linalg_pinv_atol_rtol_float{
        "aten::linalg_pinv.atol_rtol_float(Tensor self, *, float? atol=None, float? rtol=None, bool hermitian=False) "
        "-> Tensor"};
inline constinit Op<Tensor(const Tensor&, double, bool)> linalg_pinv{
    "aten::linalg_pinv(Tensor self, float rcond, bool hermitian=False) -> Tensor"};
inline constinit Op<Tensor(const Tensor&, const Tensor&, bool)> linalg_pinv_rcond_tensor{
    "aten::linalg_pinv.rcond_tensor(Tensor self, Tensor rcond, bool hermitian=False) -> Tensor"};
inline constinit Op<Tensor(const Tensor&, double)> pinverse{
    "aten::pinverse(Tensor self, float rcond=1.0000000000000001e-15) -> Tensor"};
inline constinit Op<std::tuple<Tensor, Tensor, Tensor, Tensor>(const Tensor&, const Tensor&, std::optional<double>,
                                                               std::optional<std::string_view>)>
    linalg_lstsq{
        "aten::linalg_lstsq(Tensor self, Tensor b, float? rcond=None, *, str? driver=None) -> (Tensor solution, Tensor "
        "residuals, Tensor rank, Tensor singular_values)"};
inline constinit Op<Tensor(const Tensor&)> linalg_matrix_exp{"aten::linalg_matrix_exp(Tensor self) -> Tensor"};
inline constinit Op<Tensor(const Tensor&)> matrix_exp{"aten::matrix_exp(Tensor self) -> Tensor"};
}  // namespace ops

// Batches of matrices and errors are those of core/ops/linalg/linalg.h.

/// The Moore-Penrose pseudoinverse (..., m, n) of A (..., n, m). Singular values up to max(atol, rtol * the largest)
/// count as zero; they are tensors that broadcast with the batch. `rtol` is by default max(n, m) times the dtype's
/// epsilon, 0 where a positive atol is given. Of a `hermitian` A the lower triangle is read, and its eigenvalues are
/// used. https://pytorch.org/docs/stable/generated/torch.linalg.pinv.html
inline Tensor linalg_pinv(const Tensor& A, const std::optional<Tensor>& atol = std::nullopt,
                          const std::optional<Tensor>& rtol = std::nullopt, bool hermitian = false) {
  return ops::linalg_pinv_atol_rtol_tensor(A, atol, rtol, hermitian);
}
inline Tensor linalg_pinv(const Tensor& A, std::optional<double> atol, std::optional<double> rtol,
                          bool hermitian = false) {
  return ops::linalg_pinv_atol_rtol_float(A, atol, rtol, hermitian);
}
/// With `rcond` for rtol, atol 0.
inline Tensor linalg_pinv(const Tensor& A, double rcond) { return ops::linalg_pinv(A, rcond, false); }
inline Tensor linalg_pinv(const Tensor& A, double rcond, TruthValue auto hermitian) {
  return ops::linalg_pinv(A, rcond, hermitian);
}
inline Tensor linalg_pinv(const Tensor& A, const Tensor& rcond, bool hermitian = false) {
  return ops::linalg_pinv_rcond_tensor(A, rcond, hermitian);
}
inline Tensor pinverse(const Tensor& self, double rcond = 1e-15) { return ops::pinverse(self, rcond); }

/// The X of least |A X - b|, and of these the least |X|: solution (..., m, k) of A (..., n, m) and b (..., n, k), or
/// (..., m) of a batch of vectors b (..., n); batches broadcast. `driver` is "gels" (by QR; A must have full rank),
/// "gelsy", "gelsd" or "gelss" (by the SVD; singular values up to rcond times the largest count as zero; `rcond` is by
/// default max(n, m) times the dtype's epsilon), by default "gelsy", on a GPU "gels". Returns also
///   residuals (..., k)    |A X - b|^2 by columns, where n > m, all ranks are m and the driver is not gelsy
///   rank (...)            int64, unless the driver is gels
///   singular values       (..., min(n, m)), of gelsd and gelss
/// and empty tensors for what there is not. Throws LinAlgError if gels finds a rank below the full one.
/// https://pytorch.org/docs/stable/generated/torch.linalg.lstsq.html
inline std::tuple<Tensor, Tensor, Tensor, Tensor> linalg_lstsq(const Tensor& A, const Tensor& b,
                                                               std::optional<double> rcond = std::nullopt,
                                                               std::optional<std::string_view> driver = std::nullopt) {
  return ops::linalg_lstsq(A, b, rcond, driver);
}

/// The sum of A^k / k!, k = 0, 1, ..., of A (..., n, n).
/// https://pytorch.org/docs/stable/generated/torch.linalg.matrix_exp.html
inline Tensor linalg_matrix_exp(const Tensor& A) { return ops::linalg_matrix_exp(A); }
inline Tensor matrix_exp(const Tensor& self) { return ops::matrix_exp(self); }

}  // namespace rush
