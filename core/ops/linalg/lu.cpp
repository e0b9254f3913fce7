#include "core/ops/linalg/lu.h"

#include <limits>

#include "core/ops/basic.h"
#include "core/ops/factory/range.h"
#include "core/ops/linalg/linalg.h"
#include "core/ops/linalg/matrices.h"
#include "core/ops/register.h"
#include "core/ops/view/triangular.h"

namespace rush {

namespace native {

namespace {

// 1, 2, ..., k: the pivots of rows that stay where they are.
Tensor own_rows(const Tensor& pivots) {
  return arange(1, pivots.size(-1) + 1, TensorOptions(kInt32).device(pivots.device()));
}

// 1 or -1: the determinant of P.
Tensor sign_of(const Tensor& pivots) {
  const Tensor exchanges = pivots.ne(own_rows(pivots)).sum(-1);
  return exchanges.remainder(2) * -2 + 1;
}

std::tuple<Tensor, Tensor, Tensor> linalg_lu_factor_ex(const Tensor& a, bool pivot, bool check_errors) {
  check_matrices("linalg_lu_factor_ex", a);
  const Tensor batch = as_batch(a);
  const int64_t k = std::min(a.size(-2), a.size(-1));
  const Tensor lu = empty_like_matrices(a, a.sizes());
  Tensor pivots = detail::empty_contiguous(with(batch_of(a), {k}), kInt32, a.device());
  const Tensor info = detail::empty_contiguous(batch_of(a), kInt32, a.device());
  const Tensor codes = info.view({batch.size(0)});
  kernels::linalg_lu_factor(a.device().type, as_batch(lu), pivots.view({batch.size(0), k}), batch, pivot, codes);
  if (!pivot) copy_(pivots, own_rows(pivots), false);
  if (check_errors) {
    check_info("linalg_lu_factor", codes, a.dim() > 2,
               "is singular; linalg_lu and linalg_lu_factor_ex decompose it all the same");
  }
  return {lu, pivots, info};
}

std::tuple<Tensor, Tensor> linalg_lu_factor(const Tensor& a, bool pivot) {
  check_matrices("linalg_lu_factor", a);
  const auto [lu, pivots, info] = ops::linalg_lu_factor_ex(a, pivot, /*check_errors=*/true);
  return {lu, pivots};
}

Tensor linalg_det(const Tensor& a) {
  check_square("linalg_det", a);
  if (kernels::linalg_det.has(a.device().type)) {
    const Tensor out = empty_like_matrices(a, batch_of(a));
    kernels::linalg_det(a.device().type, out.view({out.numel()}), as_batch(a));
    return out;
  }
  const auto [lu, pivots, info] = ops::linalg_lu_factor_ex(a, true, false);
  return (lu.diagonal(0, -2, -1).prod(-1) * sign_of(pivots)).masked_fill(info.ne(0), 0);
}

std::tuple<Tensor, Tensor> linalg_slogdet(const Tensor& a) {
  check_square("linalg_slogdet", a);
  const auto [lu, pivots, info] = ops::linalg_lu_factor_ex(a, true, false);
  const Tensor diagonal = lu.diagonal(0, -2, -1);
  return {diagonal.sgn().prod(-1) * sign_of(pivots), diagonal.abs().log().sum(-1)};
}

Tensor logdet(const Tensor& a) {
  const auto [sign, logarithm] = ops::linalg_slogdet(a);
  if (a.is_complex()) return sign.log() + logarithm;
  return logarithm.masked_fill(sign.lt(0), std::numeric_limits<double>::quiet_NaN());
}

// Throws unless these can be the pivots of `lu`, which waits for a GPU.
void check_pivots(const char* op, const Tensor& lu, const Tensor& pivots) {
  const int64_t n = lu.size(-2), k = std::min(n, lu.size(-1));
  RUSH_CHECK_TYPE(pivots.scalar_type() == kInt32, op, ": pivots must be int32, got ", pivots.scalar_type());
  RUSH_CHECK_VALUE(pivots.sizes() == IntArrayRef(with(batch_of(lu), {k})), op, ": pivots of shape ", pivots.sizes(),
                   " do not fit LU of shape ", lu.sizes());
  RUSH_CHECK_VALUE(pivots.device() == lu.device(), op, ": devices differ: ", lu.device(), " and ", pivots.device());
  if (!pivots.is_meta() && pivots.numel() > 0) {
    const int least = pivots.amin().item<int>(), most = pivots.amax().item<int>();
    RUSH_CHECK_VALUE(least >= 1 && most <= n, op, ": pivots must be between 1 and ", n, ", got ", least, " to ", most);
  }
}

// (..., n): which row of A each row of P^T A is.
Tensor permutation_of(const Tensor& lu, const Tensor& pivots) {
  const int64_t n = lu.size(-2), k = std::min(n, lu.size(-1)), batch = checked_numel(batch_of(lu));
  const Tensor order = detail::empty_contiguous(with(batch_of(lu), {n}), kInt64, lu.device());
  kernels::pivots_to_permutation(lu.device().type, order.view({batch, n}), contiguous(pivots).view({batch, k}));
  return order;
}

std::tuple<Tensor, Tensor, Tensor> unpack(const Tensor& lu, const Tensor& pivots, bool data, bool permutation) {
  const TensorOptions options = TensorOptions(lu.scalar_type()).device(lu.device());
  const int64_t n = lu.size(-2), k = std::min(n, lu.size(-1));
  Tensor P = empty({0}, options), L = P, U = P;
  if (permutation) {
    const Tensor order = permutation_of(lu, pivots);
    P = zeros(with(batch_of(lu), {n, n}), options).scatter(-2, order.unsqueeze(-2), 1);
  }
  if (data) {
    L = lu.narrow(-1, 0, k).tril(-1) + eye(n, k, options);
    U = lu.narrow(-2, 0, k).triu();
  }
  return {P, L, U};
}

std::tuple<Tensor, Tensor, Tensor> lu_unpack(const Tensor& lu, const Tensor& pivots, bool data, bool permutation) {
  check_matrices("lu_unpack", lu);
  if (permutation) check_pivots("lu_unpack", lu, pivots);
  return unpack(lu, pivots, data, permutation);
}

std::tuple<Tensor, Tensor, Tensor> linalg_lu(const Tensor& a, bool pivot) {
  const auto [lu, pivots, info] = ops::linalg_lu_factor_ex(a, pivot, false);
  return unpack(lu, pivots, true, true);
}

Tensor linalg_lu_solve(const Tensor& lu, const Tensor& pivots, const Tensor& b, bool left, bool adjoint) {
  check_square("linalg_lu_solve", lu);
  check_same_kind("linalg_lu_solve", lu, b);
  RUSH_CHECK_VALUE(b.dim() >= 2 && b.size(left ? -2 : -1) == lu.size(-1), "linalg_lu_solve: B of shape ", b.sizes(),
                   " does not fit LU of shape ", lu.sizes());
  // X A = B is A^H X^H = B^H.
  if (!left) return rush::adjoint(ops::linalg_lu_solve(lu, pivots, rush::adjoint(b), true, !adjoint));
  check_pivots("linalg_lu_solve", lu, pivots);
  const Tensor order = permutation_of(lu, pivots);
  const auto rows = [](const Tensor& x, const Tensor& which) {
    const DimVector sizes =
        with(broadcast_shapes(batch_of(x), which.sizes().slice(0, which.dim() - 1), "linalg_lu_solve"),
             {x.size(-2), x.size(-1)});
    return x.expand(sizes).gather(-2, which.unsqueeze(-1).expand(sizes));
  };
  if (!adjoint) {
    const Tensor y = rush::linalg_solve_triangular(lu, rows(b, order), false, true, true);
    return rush::linalg_solve_triangular(lu, y, true);
  }
  const Tensor upper = rush::adjoint(lu), y = rush::linalg_solve_triangular(upper, b, false);
  return rows(rush::linalg_solve_triangular(upper, y, true, true, true), order.argsort(-1));
}

Tensor lu_solve(const Tensor& b, const Tensor& lu, const Tensor& pivots) {
  return ops::linalg_lu_solve(lu, pivots, b, true, false);
}

}  // namespace
}  // namespace native

void register_lu_ops(Registry& r) {
  r.native(ops::linalg_lu_factor_ex, native::linalg_lu_factor_ex);
  r.native(ops::linalg_det, native::linalg_det);
  r.composite(ops::linalg_lu_factor, native::linalg_lu_factor);
  r.composite(ops::linalg_slogdet, native::linalg_slogdet);
  r.composite(ops::slogdet, native::linalg_slogdet);
  r.composite(ops::logdet, native::logdet);
  r.composite(ops::lu_unpack, native::lu_unpack);
  r.composite(ops::linalg_lu, native::linalg_lu);
  r.composite(ops::linalg_lu_solve, native::linalg_lu_solve);
  r.composite(ops::lu_solve, native::lu_solve);
}

Tensor Tensor::det() const { return ops::linalg_det(*this); }
Tensor Tensor::logdet() const { return ops::logdet(*this); }
std::tuple<Tensor, Tensor> Tensor::slogdet() const { return ops::slogdet(*this); }
Tensor Tensor::lu_solve(const Tensor& LU_data, const Tensor& LU_pivots) const {
  return ops::lu_solve(*this, LU_data, LU_pivots);
}

}  // namespace rush
