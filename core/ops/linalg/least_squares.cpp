#include "core/ops/linalg/least_squares.h"

#include <limits>

#include "core/ops/basic.h"
#include "core/ops/linalg/linalg.h"
#include "core/ops/linalg/matrices.h"
#include "core/ops/register.h"

namespace rush {

namespace native {

namespace {

double epsilon_of(const Tensor& a) {
  return to_real(a.scalar_type()) == kFloat32 ? std::numeric_limits<float>::epsilon()
                                              : std::numeric_limits<double>::epsilon();
}
double default_tolerance(const Tensor& a) {
  return epsilon_of(a) * static_cast<double>(std::max(a.size(-2), a.size(-1)));
}

// A tolerance for each matrix, beside its singular values.
Tensor tolerance_column(const Tensor& a, const Tensor& t) {
  return t.to(TensorOptions(to_real(a.scalar_type())).device(a.device())).unsqueeze(-1);
}
Tensor tolerance_tensor(const Tensor& a, double value) {
  return full({}, value, TensorOptions(to_real(a.scalar_type())).device(a.device()));
}

// The largest size (..., k) that counts as zero, (..., 1).
Tensor cutoff(const Tensor& a, const Tensor& sizes, const std::optional<Tensor>& atol,
              const std::optional<Tensor>& rtol) {
  const Tensor absolute = tolerance_column(a, atol ? *atol : tolerance_tensor(a, 0));
  Tensor relative = tolerance_column(a, rtol ? *rtol : tolerance_tensor(a, default_tolerance(a)));
  if (!rtol) relative = where(absolute.gt(0), 0, relative);
  return maximum(absolute, relative * sizes.amax({-1}, true));
}

Tensor linalg_pinv(const Tensor& a, const std::optional<Tensor>& atol, const std::optional<Tensor>& rtol,
                   bool hermitian) {
  hermitian ? check_square("linalg_pinv", a) : check_matrices("linalg_pinv", a);
  if (a.numel() == 0) {
    return zeros(with(batch_of(a), {a.size(-1), a.size(-2)}), TensorOptions(a.scalar_type()).device(a.device()));
  }
  const auto reciprocals = [&](const Tensor& values) {
    const Tensor sizes = values.abs();
    return where(sizes.gt(cutoff(a, sizes, atol, rtol)), values.reciprocal(), 0).unsqueeze(-2);
  };
  if (hermitian) {
    const auto [w, v] = rush::linalg_eigh(a);
    return (v * reciprocals(w)).matmul(adjoint(v));
  }
  const auto [u, s, vh] = rush::linalg_svd(a, false);
  return (adjoint(vh) * reciprocals(s)).matmul(adjoint(u));
}

Tensor linalg_pinv_by_numbers(const Tensor& a, std::optional<double> atol, std::optional<double> rtol, bool hermitian) {
  const auto as_tensor = [&](std::optional<double> value) {
    return value ? std::optional(tolerance_tensor(a, *value)) : std::nullopt;
  };
  return ops::linalg_pinv_atol_rtol_tensor(a, as_tensor(atol), as_tensor(rtol), hermitian);
}

Tensor linalg_pinv_by_rcond(const Tensor& a, double rcond, bool hermitian) {
  return linalg_pinv_by_numbers(a, 0., rcond, hermitian);
}

Tensor linalg_pinv_by_rcond_tensor(const Tensor& a, const Tensor& rcond, bool hermitian) {
  return ops::linalg_pinv_atol_rtol_tensor(a, tolerance_tensor(a, 0), rcond, hermitian);
}

Tensor pinverse(const Tensor& a, double rcond) { return linalg_pinv_by_rcond(a, rcond, false); }

// X of full-rank A X = B, B (..., n, k): with the shorter side's R of A = Q R or A^H = Q R.
Tensor solve_by_qr(const Tensor& a, const Tensor& b) {
  const bool tall = a.size(-2) >= a.size(-1);
  const auto [q, r] = rush::linalg_qr(tall ? a : adjoint(a));
  if (r.numel() > 0 && !r.is_meta()) {
    const Tensor sizes = r.diagonal(0, -2, -1).abs();
    const bool singular = sizes.le(sizes.amax({-1}, true) * epsilon_of(a)).any().item<bool>();
    RUSH_CHECK_LINALG(!singular, "linalg_lstsq: driver 'gels' needs a matrix of full rank; 'gelsd' solves others");
  }
  if (tall) return rush::linalg_solve_triangular(r, adjoint(q).matmul(b), true);
  return q.matmul(rush::linalg_solve_triangular(adjoint(r), b, false));
}

struct LeastSquares {
  Tensor solution, rank, singular_values;
};

// X = V S^-1 U^H B over the singular values that do not count as zero.
LeastSquares solve_by_svd(const Tensor& a, const Tensor& b, double rcond) {
  const auto [u, s, vh] = rush::linalg_svd(a, false);
  const Tensor kept = s.gt(s.narrow(-1, 0, std::min<int64_t>(1, s.size(-1))) * rcond);
  const Tensor reciprocals = where(kept, s.reciprocal(), 0).unsqueeze(-1);
  return {adjoint(vh).matmul(reciprocals * adjoint(u).matmul(b)), kept.sum(-1), s};
}

std::tuple<Tensor, Tensor, Tensor, Tensor> linalg_lstsq(const Tensor& a, const Tensor& b, std::optional<double> rcond,
                                                        std::optional<std::string_view> driver) {
  check_matrices("linalg_lstsq", a);
  check_same_kind("linalg_lstsq", a, b);
  const std::string_view name = driver.value_or(a.device().is_accelerator() ? "gels" : "gelsy");
  const bool by_qr = name == "gels", with_values = name == "gelsd" || name == "gelss";
  RUSH_CHECK_VALUE(by_qr || with_values || name == "gelsy",
                   "linalg_lstsq: driver must be 'gels', 'gelsy', 'gelsd' or 'gelss', got '", name, "'");
  const bool vector = b.dim() >= 1 && is_vector(a, b);
  RUSH_CHECK_VALUE((vector || b.dim() >= 2) && b.size(vector ? -1 : -2) == a.size(-2), "linalg_lstsq: b of shape ",
                   b.sizes(), " does not fit A of shape ", a.sizes());
  const Tensor columns = vector ? b.unsqueeze(-1) : b;
  const TensorOptions real = TensorOptions(to_real(a.scalar_type())).device(a.device());
  Tensor residuals = empty({0}, real);
  LeastSquares x = by_qr ? LeastSquares{solve_by_qr(a, columns), empty({0}, real.dtype(kInt64)), residuals}
                         : solve_by_svd(a, columns, rcond.value_or(default_tolerance(a)));
  const bool whole = by_qr || a.is_meta() || x.rank.eq(a.size(-1)).all().item<bool>();
  if (a.size(-2) > a.size(-1) && name != "gelsy" && whole) {
    residuals = (columns - a.matmul(x.solution)).abs().square().sum(-2);
  }
  return {vector ? x.solution.squeeze(-1) : x.solution, residuals, x.rank,
          by_qr || with_values ? x.singular_values : empty({0}, real)};
}

}  // namespace
}  // namespace native

void register_least_squares_ops(Registry& r) {
  r.native(ops::linalg_pinv_atol_rtol_tensor, native::linalg_pinv);
  r.composite(ops::linalg_pinv_atol_rtol_float, native::linalg_pinv_by_numbers);
  r.composite(ops::linalg_pinv, native::linalg_pinv_by_rcond);
  r.composite(ops::linalg_pinv_rcond_tensor, native::linalg_pinv_by_rcond_tensor);
  r.composite(ops::pinverse, native::pinverse);
  r.native(ops::linalg_lstsq, native::linalg_lstsq);
}

Tensor Tensor::pinverse(double rcond) const { return ops::pinverse(*this, rcond); }

}  // namespace rush
