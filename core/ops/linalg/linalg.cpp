// Equations, inverses and decompositions. LU decompositions and determinants are in lu.cpp, norms in matrix_norm.cpp.
#include "core/ops/linalg/linalg.h"

#include "core/ops/basic.h"
#include "core/ops/linalg/matrices.h"

#include "core/iterator/tensor_iterator.h"
#include "core/ops/register.h"
#include "core/ops/view/triangular.h"

namespace rush {

namespace native {

namespace {

Tensor linalg_inv(const Tensor& a) {
  check_square("linalg_inv", a);
  const Tensor out = empty_like_matrices(a, a.sizes()), batch = as_batch(a), info = new_info(batch);
  kernels::linalg_inv(a.device().type, as_batch(out), batch, info);
  check_info("linalg_inv", info, a.dim() > 2, "is singular");
  return out;
}

Tensor linalg_solve(const Tensor& a, const Tensor& b, bool left) {
  check_square("linalg_solve", a);
  check_same_kind("linalg_solve", a, b);
  const bool vector = b.dim() >= 1 && is_vector(a, b);
  RUSH_CHECK_VALUE(vector || b.dim() >= 2, "linalg_solve: B of shape ", b.sizes(), " does not fit A of shape ",
                   a.sizes());
  RUSH_CHECK_VALUE(left || !vector, "linalg_solve: a vector B, shape ", b.sizes(), ", needs left=True");
  const Tensor columns = vector ? b.unsqueeze(-1) : left ? b : b.transpose(-2, -1);
  RUSH_CHECK_VALUE(columns.size(-2) == a.size(-1), "linalg_solve: B of shape ", b.sizes(), " does not fit A of shape ",
                   a.sizes());
  const DimVector batch = broadcast_shapes(batch_of(a), batch_of(columns), "linalg_solve");
  // X A = B is A^T X^T = B^T.
  const Tensor matrices = broadcast_batch(left ? a : a.transpose(-2, -1), batch);
  const Tensor out = empty_like_matrices(a, with(batch, {columns.size(-2), columns.size(-1)}));
  const Tensor info = new_info(matrices);
  kernels::linalg_solve(a.device().type, as_batch(out), matrices, broadcast_batch(columns, batch), info);
  check_info("linalg_solve", info, !batch.empty(), "is singular");
  return vector ? out.squeeze(-1) : left ? out : out.transpose(-2, -1);
}

Tensor linalg_solve_triangular(const Tensor& a, const Tensor& b, bool upper, bool left, bool unitriangular) {
  check_square("linalg_solve_triangular", a);
  check_same_kind("linalg_solve_triangular", a, b);
  RUSH_CHECK_VALUE(b.dim() >= 2 && b.size(left ? -2 : -1) == a.size(-1), "linalg_solve_triangular: B of shape ",
                   b.sizes(), " does not fit A of shape ", a.sizes());
  const DimVector batch = broadcast_shapes(batch_of(a), batch_of(b), "linalg_solve_triangular");
  const Tensor columns = left ? b : b.transpose(-2, -1);
  const Tensor out = empty_like_matrices(a, with(batch, {columns.size(-2), columns.size(-1)}));
  kernels::linalg_solve_triangular(a.device().type, as_batch(out),
                                   broadcast_batch(left ? a : a.transpose(-2, -1), batch),
                                   broadcast_batch(columns, batch), left ? upper : !upper, unitriangular);
  return left ? out : out.transpose(-2, -1);
}

Tensor linalg_cholesky(const Tensor& a, bool upper) {
  check_square("linalg_cholesky", a);
  const Tensor out = empty_like_matrices(a, a.sizes());
  const Tensor batch = as_batch(upper ? a.transpose(-2, -1).conj() : a), info = new_info(batch);
  kernels::linalg_cholesky(a.device().type, as_batch(out), batch, info);
  check_info("linalg_cholesky", info, a.dim() > 2, "is not positive-definite");
  return upper ? out.transpose(-2, -1).conj() : out;
}

std::tuple<Tensor, Tensor> linalg_qr(const Tensor& a, std::string_view mode) {
  check_matrices("linalg_qr", a);
  RUSH_CHECK_VALUE(mode == "reduced" || mode == "complete" || mode == "r",
                   "linalg_qr: mode must be 'reduced', 'complete' or 'r', got '", mode, "'");
  const int64_t n = a.size(-2), m = a.size(-1);
  const int64_t k = mode == "complete" ? n : std::min(n, m);
  const Tensor r = empty_like_matrices(a, with(batch_of(a), {k, m}));
  const Tensor q = mode == "r" ? Tensor() : empty_like_matrices(a, with(batch_of(a), {n, k}));
  kernels::linalg_qr(a.device().type, q.defined() ? as_batch(q) : q, as_batch(r), as_batch(a));
  return {q.defined() ? q : empty_like_matrices(a, {0}), r};
}

std::tuple<Tensor, Tensor> linalg_eigh(const Tensor& a, std::string_view triangle) {
  check_square("linalg_eigh", a);
  RUSH_CHECK_VALUE(triangle == "L" || triangle == "U" || triangle == "l" || triangle == "u",
                   "linalg_eigh: UPLO must be 'L' or 'U', got '", triangle, "'");
  const bool lower = triangle == "L" || triangle == "l";
  const Tensor batch = as_batch(lower ? a : a.transpose(-2, -1).conj()), info = new_info(batch);
  const Tensor values = detail::empty_contiguous(with(batch_of(a), {a.size(-1)}), to_real(a.scalar_type()), a.device());
  const Tensor vectors = empty_like_matrices(a, a.sizes());
  kernels::linalg_eigh(a.device().type, values.view({batch.size(0), a.size(-1)}), as_batch(vectors), batch, info);
  check_info("linalg_eigh", info, a.dim() > 2, "has eigenvalues that the iteration did not find");
  return {values, vectors};
}

std::tuple<Tensor, Tensor> linalg_eig(const Tensor& a) {
  check_square("linalg_eig", a);
  RUSH_CHECK_VALUE(a.is_meta() || a.isfinite().all().item<bool>(), "linalg_eig: the input has infinities or NaNs");
  const Tensor batch = as_batch(a), info = new_info(batch);
  const ScalarType complex = to_complex(a.scalar_type());
  const Tensor values = detail::empty_contiguous(with(batch_of(a), {a.size(-1)}), complex, a.device());
  const Tensor vectors = detail::empty_contiguous(a.sizes(), complex, a.device());
  kernels::linalg_eig(a.device().type, values.view({batch.size(0), a.size(-1)}), as_batch(vectors), batch, info);
  check_info("linalg_eig", info, a.dim() > 2, "has eigenvalues that the iteration did not find");
  return {values, vectors};
}

std::tuple<Tensor, Tensor, Tensor> linalg_svd_parts(const Tensor& a, bool full_matrices, bool compute_uv,
                                                    std::optional<std::string_view> driver) {
  check_matrices("linalg_svd", a);
  // Some solvers say so, others return NaNs.
  RUSH_CHECK_LINALG(a.is_meta() || a.isfinite().all().item<bool>(), "linalg_svd: the input has infinities or NaNs");
  RUSH_CHECK_VALUE(!driver || a.device().is_accelerator(), "linalg_svd: a driver can be chosen on a GPU only");
  const int64_t n = a.size(-2), m = a.size(-1), k = std::min(n, m);
  const Tensor batch = as_batch(a), info = new_info(batch);
  const bool has_vectors = compute_uv || !kernels::linalg_svd.runs_on_cpu(a.device().type);
  const auto vectors = [&](int64_t rows, int64_t columns) {
    return has_vectors ? empty_like_matrices(a, with(batch_of(a), {rows, columns})) : Tensor();
  };
  const Tensor u = vectors(n, full_matrices ? n : k), vh = vectors(full_matrices ? m : k, m);
  const Tensor s = detail::empty_contiguous(with(batch_of(a), {k}), to_real(a.scalar_type()), a.device());
  const auto batch_or_none = [](const Tensor& t) { return t.defined() ? as_batch(t) : t; };
  kernels::linalg_svd(a.device().type, batch_or_none(u), s.view({batch.size(0), k}), batch_or_none(vh), batch, info);
  check_info("linalg_svd", info, a.dim() > 2, "has singular values that the iteration did not find");
  if (!compute_uv) return {Tensor(), s, Tensor()};
  return {u, s, vh};
}

std::tuple<Tensor, Tensor, Tensor> linalg_svd(const Tensor& a, bool full_matrices,
                                              std::optional<std::string_view> driver) {
  return linalg_svd_parts(a, full_matrices, true, driver);
}

Tensor linalg_eigvalsh(const Tensor& a, std::string_view triangle) {
  return std::get<0>(ops::linalg_eigh(a, triangle));
}

Tensor linalg_eigvals(const Tensor& a) { return std::get<0>(ops::linalg_eig(a)); }

Tensor linalg_svdvals(const Tensor& a, std::optional<std::string_view> driver) {
  const bool has_gradient = dispatch_state.grad_mode && a.requires_grad();
  return std::get<1>(has_gradient ? ops::linalg_svd(a, false, driver) : ops::_linalg_svd(a, false, false, driver));
}

}  // namespace
}  // namespace native

void register_linalg_ops(Registry& r) {
  r.native(ops::linalg_inv, native::linalg_inv);
  r.native(ops::linalg_solve, native::linalg_solve);
  r.native(ops::linalg_solve_triangular, native::linalg_solve_triangular);
  r.native(ops::linalg_cholesky, native::linalg_cholesky);
  r.native(ops::linalg_qr, native::linalg_qr);
  r.native(ops::linalg_eigh, native::linalg_eigh);
  r.native(ops::linalg_svd, native::linalg_svd);
  r.native(ops::_linalg_svd, native::linalg_svd_parts);
  r.native(ops::linalg_eig, native::linalg_eig);
  r.composite(ops::linalg_eigvals, native::linalg_eigvals);
  r.composite(ops::linalg_eigvalsh, native::linalg_eigvalsh);
  r.composite(ops::linalg_svdvals, native::linalg_svdvals);
}

Tensor Tensor::inverse() const { return ops::linalg_inv(*this); }

}  // namespace rush
