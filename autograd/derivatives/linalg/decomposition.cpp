// LU, QR, eigenvalues and singular values. The latter's factors are unique up to signs (phases), and a function of them
// has a derivative where it does not depend on these. Sources as in linalg.cpp; for the SVD also J. Townsend,
// "Differentiating the singular value decomposition" (2016).
#include "autograd/derivatives/register.h"
#include "core/ops/basic.h"
#include "core/ops/factory/range.h"
#include "core/ops/linalg/linalg.h"
#include "core/ops/view/triangular.h"

namespace rush {

namespace {

// Sums of what is defined.
Tensor plus(const Tensor& a, const Tensor& b) { return !a.defined() ? b : b.defined() ? a + b : a; }

// The differences b_j - b_i with ones on the diagonal, to divide by.
Tensor gaps(const Tensor& b) {
  const Tensor own = eye(b.size(-1), TensorOptions(kBool).device(b.device()));
  return (b.unsqueeze(-2) - b.unsqueeze(-1)).masked_fill(own, 1);
}

// A tensor of `t`'s elements off the diagonals of its matrices, zeros on them.
Tensor off_diagonal(const Tensor& t) {
  return t.masked_fill(eye(t.size(-1), TensorOptions(kBool).device(t.device())), 0);
}

// Complex vectors V are unique up to their phases. `turned` is V^H GV: the imaginary parts of its diagonal are the
// derivatives of the loss by the phases.
void check_phases(const char* op, const Tensor& turned) {
  if (!turned.is_complex() || turned.is_meta()) return;
  const Tensor by_vectors = turned.detach(), by_phases = imag(by_vectors.diagonal(0, -2, -1)).abs();
  RUSH_CHECK(by_phases.le((linalg_matrix_norm(by_vectors) + 1).unsqueeze(-1) * 1e-2).all().item<bool>(), op,
             ": the loss depends on the phases of complex vectors, which are arbitrary, so it has no derivative; "
             "compute it from what does not depend on them, such as absolute values or products V V^H");
}

// For a tall A = Q R: d A = (GQ + Q M) R^-H with M the Hermitian matrix whose upper triangle is GR R^H - Q^H GQ's. Of a
// wide A = Q (R1 R2) the right part is Q^H times A's own: its gradient is Q GR2, and adds A2 GR2^H to GQ.
struct LinalgQrBackward final : Node {
  Saved q, r;
  bool without_q = false, complete_tall = false;
  RUSH_SAVED(q, r)
  void save(const Tensor& a, std::string_view mode) {
    without_q = mode == "r";
    complete_tall = mode == "complete" && a.size(-2) > a.size(-1);
  }
  auto saved_results() { return std::tie(q, r); }
  Tensors apply(const Tensors& g) override {
    RUSH_CHECK(!without_q, "linalg_qr: mode 'r' has no derivative: it would need Q");
    RUSH_CHECK(!complete_tall, "linalg_qr: mode 'complete' has no derivative for a matrix of more rows than columns");
    const Tensor Q = q.get(), R = r.get();
    const int64_t rows = Q.size(-2), columns = R.size(-1);
    if (rows >= columns) return {square_part(Q, R, g[0], g[1])};
    const Tensor R1 = R.narrow(-1, 0, rows), R2 = R.narrow(-1, rows, columns - rows);
    if (!g[1].defined()) {
      const Tensor left = square_part(Q, R1, g[0], Tensor());
      return {cat({left, zeros_like(Q.matmul(R2))}, -1)};
    }
    const Tensor G1 = g[1].narrow(-1, 0, rows), G2 = g[1].narrow(-1, rows, columns - rows);
    const Tensor grad_q = plus(g[0], Q.matmul(R2).matmul(adjoint(G2)));
    return {cat({square_part(Q, R1, grad_q, G1), Q.matmul(G2)}, -1)};
  }

 private:
  static Tensor square_part(const Tensor& Q, const Tensor& R, const Tensor& grad_q, const Tensor& grad_r) {
    Tensor inner;
    if (grad_r.defined()) inner = grad_r.matmul(adjoint(R));
    if (grad_q.defined()) inner = plus(inner, -adjoint(Q).matmul(grad_q));
    const Tensor upper = inner.triu(), strict = inner.triu(1);
    // Of complex numbers on the diagonal only the real part counts.
    const Tensor diagonal = upper - strict;
    const Tensor hermitian = strict + adjoint(strict) + (diagonal + adjoint(diagonal)) * 0.5;
    const Tensor grad = plus(grad_q, Q.matmul(hermitian));
    return ops::linalg_solve_triangular(adjoint(R), grad, false, false, false);
  }
};

Tensor skew(const Tensor& x) { return x - adjoint(x); }

// d A = V (diag(Gw) + skew(V^H GV) / (2 gaps(w))) V^H, the quotient off the diagonal.
struct LinalgEighBackward final : Node {
  Saved values, vectors;
  RUSH_SAVED(values, vectors)
  auto saved_results() { return std::tie(values, vectors); }
  Tensors apply(const Tensors& g) override {
    const Tensor v = vectors.get();
    if (!g[1].defined()) return {(v * g[0].unsqueeze(-2)).matmul(adjoint(v))};
    // The vectors stay orthonormal, so only the skew part of V^H GV moves them.
    const Tensor turned = adjoint(v).matmul(g[1]);
    check_phases("linalg_eigh", turned);
    Tensor inner = off_diagonal(skew(turned) / (gaps(values.get()) * 2));
    if (g[0].defined()) inner = inner + g[0].diag_embed();
    return {v.matmul(inner).matmul(adjoint(v))};
  }
};

// d A = V^-H (diag(Gw) + (V^H GV - V^H V diag(Re(V^H GV))) / conj(gaps(w))) V^H, the quotient off the diagonal. The
// second term keeps the lengths of the vectors at one.
struct LinalgEigBackward final : Node {
  Saved values, vectors;
  bool real = false;
  RUSH_SAVED(values, vectors)
  void save(const Tensor& a) { real = !a.is_complex(); }
  auto saved_results() { return std::tie(values, vectors); }
  Tensors apply(const Tensors& g) override {
    const Tensor v = vectors.get(), vh = adjoint(v);
    Tensor inner;
    if (g[1].defined()) {
      const Tensor turned = vh.matmul(g[1]);
      check_phases("linalg_eig", turned);
      const Tensor lengths = rush::real(turned.diagonal(0, -2, -1)).unsqueeze(-2);
      inner = off_diagonal((turned - vh.matmul(v * lengths)) / gaps(values.get()).conj());
    }
    if (g[0].defined()) inner = plus(inner, g[0].diag_embed());
    const Tensor grad = ops::linalg_solve(vh, inner.matmul(vh), true);
    return {real ? rush::real(grad) : grad};
  }
};

// Of A = P L U, k = min(n, m), with L1 and U1 the square parts of L and U, L2 and U2 what is below and right of them:
// with M = strict lower triangle of L1^H GL1 - GU2 U2^H plus upper triangle of GU1 U1^H - L2^H GL2,
// P^T d A = L1^-H M U1^-H, right of it L1^-H GU2, below it GL2 U1^-H.
struct LinalgLuFactorExBackward final : Node {
  Saved lu, pivots;
  static constexpr size_t kDifferentiable = 1;
  RUSH_SAVED(lu, pivots)
  void save_output(const Tensor& factors, const Tensor& places, const Tensor&) {
    lu = Saved::output(factors, this);
    pivots = places;
  }
  Tensors apply(const Tensors& g) override {
    const Tensor factors = lu.get(), p = std::get<0>(ops::lu_unpack(factors, pivots.get(), false, true));
    const int64_t n = factors.size(-2), m = factors.size(-1), k = std::min(n, m);
    const auto block = [&](const Tensor& t, bool below, bool right) {
      return t.narrow(-2, below ? k : 0, below ? n - k : k).narrow(-1, right ? k : 0, right ? m - k : k);
    };
    const Tensor square = block(factors, false, false), grad = block(g[0], false, false);
    const Tensor one = eye(k, TensorOptions(factors.scalar_type()).device(factors.device()));
    const Tensor l = adjoint(square.tril(-1) + one), u = adjoint(square.triu());
    Tensor lower = l.matmul(grad.tril(-1)), upper = grad.triu().matmul(u);
    if (m > k) lower = lower - block(g[0], false, true).matmul(adjoint(block(factors, false, true)));
    if (n > k) upper = upper - adjoint(block(factors, true, false)).matmul(block(g[0], true, false));
    const auto divide = [&](const Tensor& x) { return ops::linalg_solve_triangular(u, x, false, false, false); };
    Tensor out = divide(lower.tril(-1) + upper.triu());
    if (m > k) out = cat({out, block(g[0], false, true)}, -1);
    out = ops::linalg_solve_triangular(l, out, true, true, true);
    if (n > k) out = cat({out, divide(block(g[0], true, false))}, -2);
    return {p.matmul(out)};
  }
};

// For A = U S V^H with the thin factors: d A = U K V^H + (1 - U U^H) GU S^-1 V^H + U S^-1 GV^H (1 - V V^H), where
// K = (skew(U^H GU) S + S skew(V^H GV)) / gaps(s^2) + diag(Gs), skew(X) = X - X^H.
struct LinalgSvdBackward final : Node {
  Saved u, s, vh;
  RUSH_SAVED(u, s, vh)
  auto saved_results() { return std::tie(u, s, vh); }
  Tensors apply(const Tensors& g) override {
    const Tensor S = s.get();
    const int64_t k = S.size(-1);
    const auto thin = [&](const Tensor& t, int64_t dim) { return t.defined() ? t.narrow(dim, 0, k) : t; };
    const Tensor U = thin(u.get(), -1), Vh = thin(vh.get(), -2);
    RUSH_CHECK_NOT_IMPLEMENTED(U.defined(), "_linalg_svd: it has a derivative with compute_uv alone");
    const Tensor grad_u = thin(g[0], -1), grad_vh = thin(g[2], -2);
    if (!grad_u.defined() && !grad_vh.defined()) return {(U * g[1].unsqueeze(-2)).matmul(Vh)};

    const Tensor row = S.unsqueeze(-2), column = S.unsqueeze(-1);
    Tensor turned_u, turned_v, inner;
    if (grad_u.defined()) {
      turned_u = adjoint(U).matmul(grad_u);
      inner = skew(turned_u) * row;
    }
    if (grad_vh.defined()) {
      turned_v = Vh.matmul(adjoint(grad_vh));
      inner = plus(inner, column * skew(turned_v));
    }
    check_phases("linalg_svd", plus(turned_u, turned_v));
    inner = off_diagonal(inner / gaps(S * S));
    if (g[1].defined()) inner = inner + g[1].diag_embed();
    if (U.is_complex() && grad_u.defined()) {
      // The phase of a pair of vectors, which real ones lack, is taken to move with U alone.
      inner = inner + (skew(turned_u).diagonal(0, -2, -1) / (S * 2)).diag_embed();
    }
    Tensor grad = U.matmul(inner).matmul(Vh);
    if (U.size(-2) > k && grad_u.defined()) {
      const Tensor scaled = grad_u / row;
      grad = grad + (scaled - U.matmul(adjoint(U).matmul(scaled))).matmul(Vh);
    }
    if (Vh.size(-1) > k && grad_vh.defined()) {
      const Tensor scaled = grad_vh / column;
      grad = grad + U.matmul(scaled - scaled.matmul(adjoint(Vh)).matmul(Vh));
    }
    return {grad};
  }
};

}  // namespace

void register_decomposition_derivatives(Registry& r) {
  derive<ops::linalg_qr, LinalgQrBackward>(r);
  derive<ops::linalg_eigh, LinalgEighBackward>(r);
  derive<ops::linalg_eig, LinalgEigBackward>(r);
  derive<ops::linalg_lu_factor_ex, LinalgLuFactorExBackward>(r);
  derive_all<LinalgSvdBackward, ops::linalg_svd, ops::_linalg_svd>(r);
}

}  // namespace rush
