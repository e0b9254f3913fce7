// Equations, determinants, Cholesky factors, pseudoinverses and exponentials. Sources of the formulas: M. Giles, "An
// extended collection of matrix derivative results for forward and reverse mode algorithmic differentiation" (2008),
// and PyTorch's FunctionsManual.
#include "core/ops/linalg/linalg.h"

#include "autograd/derivatives/pointwise/pointwise.h"
#include "autograd/derivatives/register.h"
#include "core/ops/basic.h"
#include "core/ops/factory/range.h"
#include "core/ops/linalg/least_squares.h"
#include "core/ops/linalg/matrices.h"
#include "core/ops/view/triangular.h"

namespace rush {

namespace {

// d det(A) = g adj(A)^H, adj(A) = det(A) A^-1 being the adjugate.
struct LinalgDetBackward final : Node {
  Saved a, result;
  RUSH_SAVED(a, result)
  void save(const Tensor& matrix) { a = matrix; }
  void save_output(const Tensor& out) { result = Saved::output(out, this); }
  Tensors apply(const Tensors& g) override {
    const Tensor det = result.get(), matrix = a.get();
    if (matrix.numel() == 0) return {Tensor()};
    const bool invertible = det.is_meta() || !det.eq(0).any().item<bool>();
    if (!invertible) return {g[0].unsqueeze(-1).unsqueeze(-1) * cofactors(matrix)};
    return {(g[0] * det.conj()).unsqueeze(-1).unsqueeze(-1) * adjoint(ops::linalg_inv(matrix))};
  }

 private:
  // A singular matrix has an adjugate too: with A = U S V^H, adj(A)^H = conj(det U det V^H) U adj(S) V^H.
  static Tensor cofactors(const Tensor& matrix) {
    const auto [u, s, vh] = ops::linalg_svd(matrix, true, std::nullopt);
    const Tensor own = eye(s.size(-1), TensorOptions(kBool).device(s.device()));
    const Tensor others = s.unsqueeze(-2).masked_fill(own, 1).prod(-1);  // of all singular values but one
    const Tensor sign = (ops::linalg_det(u) * ops::linalg_det(vh)).conj();
    return sign.unsqueeze(-1).unsqueeze(-1) * (u * others.unsqueeze(-2)).matmul(vh);
  }
};

struct LinalgInvBackward final : FromResult {  // d A^-1 = -A^-H G A^-H
  Tensors apply(const Tensors& g) override {
    const Tensor inverse = adjoint(result.get());
    return {-inverse.matmul(g[0]).matmul(inverse)};
  }
};

// For A X = B: d B = A^-H G, d A = -(d B) X^H. For X A = B: d B = G A^-H, d A = -X^H (d B).
struct LinalgSolveBackward final : Node {
  Saved a, result;
  bool left = true, vector = false;
  RUSH_SAVED(a, result)
  void save(const Tensor& matrix, const Tensor& b, bool from_left) {
    a = matrix;
    left = from_left;
    vector = native::is_vector(matrix, b);
  }
  void save_output(const Tensor& out) { result = Saved::output(out, this); }
  Tensors apply(const Tensors& g) override {
    const auto columns = [&](const Tensor& t) { return vector ? t.unsqueeze(-1) : t; };
    const Tensor grad = ops::linalg_solve(adjoint(a.get()), columns(g[0]), left);
    const Tensor x = adjoint(columns(result.get()));
    Tensor a_grad;
    if (needs(0)) a_grad = left ? -grad.matmul(x) : -x.matmul(grad);
    return {a_grad, vector ? grad.squeeze(-1) : grad};
  }
};

struct LinalgSolveTriangularBackward final : Node {  // likewise, within the triangle
  Saved a, result;
  bool upper = false, left = true, unit = false;
  RUSH_SAVED(a, result)
  auto saved_arguments() { return std::tie(a, std::ignore, upper, left, unit); }
  void save_output(const Tensor& out) { result = Saved::output(out, this); }
  Tensors apply(const Tensors& g) override {
    const Tensor grad = ops::linalg_solve_triangular(adjoint(a.get()), g[0], !upper, left, unit);
    const Tensor x = adjoint(result.get());
    Tensor a_grad;
    if (needs(0)) {
      const Tensor full = left ? -grad.matmul(x) : -x.matmul(grad);
      const int64_t diagonal = unit ? 1 : 0;
      a_grad = upper ? full.triu(diagonal) : full.tril(-diagonal);
    }
    return {a_grad, grad};
  }
};

// For A = L L^H: d A = L^-H P L^-1, P having the lower triangle of L^H G, mirrored above its diagonal and halved.
struct LinalgCholeskyBackward final : Node {
  Saved result;
  bool upper = false;
  RUSH_SAVED(result)
  void save(const Tensor&, bool is_upper) { upper = is_upper; }
  void save_output(const Tensor& out) { result = Saved::output(out, this); }
  Tensors apply(const Tensors& g) override {
    const Tensor l = upper ? adjoint(result.get()) : result.get();
    const Tensor product = adjoint(l).matmul(upper ? adjoint(g[0]) : g[0]);
    const Tensor mirrored = (product.tril() + adjoint(product.tril(-1))) * 0.5;
    const Tensor inner = ops::linalg_solve_triangular(adjoint(l), mirrored, true, true, false);
    return {ops::linalg_solve_triangular(l, inner, false, false, false)};
  }
};

// For X = A^+ (G. Golub and V. Pereyra, "The differentiation of pseudo-inverses", 1973):
// d A = -(X K)^H + K X^H - A X K X^H + X^H X (G^H - K A), K = G^H X.
Tensor pinv_gradient(const Tensor& g, const Tensor& a, const Tensor& x) {
  const Tensor gh = adjoint(g), xh = adjoint(x), k = gh.matmul(x), kxh = k.matmul(xh);
  return kxh - adjoint(x.matmul(k)) - a.matmul(x.matmul(kxh)) + xh.matmul(x.matmul(gh - k.matmul(a)));
}

struct LinalgPinvBackward final : Node {
  Saved a, result;
  RUSH_SAVED(a, result)
  void save(const Tensor& matrix, const std::optional<Tensor>&, const std::optional<Tensor>&, bool) { a = matrix; }
  void save_output(const Tensor& out) { result = Saved::output(out, this); }
  Tensors apply(const Tensors& g) override { return {pinv_gradient(g[0], a.get(), result.get()), Tensor(), Tensor()}; }
};

// For X = A^+ B: d B = A^+H G, and A^+ has the gradient G B^H. The residuals |R|^2, R = B - A X, move with A and B
// alone, as X is where they are least.
struct LinalgLstsqBackward final : Node {
  Saved a, b, solution;
  static constexpr size_t kDifferentiable = 2;
  RUSH_SAVED(a, b, solution)
  auto saved_arguments() { return std::tie(a, b, std::ignore, std::ignore); }
  void save_output(const Tensor& x, const Tensor&, const Tensor&, const Tensor&) { solution = Saved::output(x, this); }
  Tensors apply(const Tensors& g) override {
    const Tensor A = a.get(), right = b.get();
    const bool vector = native::is_vector(A, right);
    const auto columns = [&](const Tensor& t) { return vector ? t.unsqueeze(-1) : t; };
    const Tensor B = columns(right);
    Tensor a_grad, b_grad;
    if (g[0].defined()) {
      const Tensor pinv = ops::linalg_pinv_atol_rtol_tensor(A, std::nullopt, std::nullopt, false), G = columns(g[0]);
      b_grad = adjoint(pinv).matmul(G);
      if (needs(0)) a_grad = pinv_gradient(G.matmul(adjoint(B)), A, pinv);
    }
    if (g[1].defined() && g[1].numel() > 0) {
      const Tensor X = columns(solution.get()), moved = (B - A.matmul(X)) * (g[1] * 2).unsqueeze(-2);
      b_grad = b_grad.defined() ? b_grad + moved : moved;
      const Tensor product = moved.matmul(adjoint(X));
      a_grad = a_grad.defined() ? a_grad - product : -product;
    }
    return {a_grad, vector && b_grad.defined() ? b_grad.squeeze(-1) : b_grad};
  }
};

// The upper right block of exp([[A^H, G], [0, A^H]]) (R. Mathias, "A chain rule for matrix functions and applications",
// 1996).
struct LinalgMatrixExpBackward final : Node {
  Saved a;
  RUSH_SAVED(a)
  void save(const Tensor& matrix) { a = matrix; }
  Tensors apply(const Tensors& g) override {
    const Tensor matrix = adjoint(a.get());
    const int64_t n = matrix.size(-1);
    const Tensor blocks = cat({cat({matrix, g[0]}, -1), cat({zeros_like(matrix), matrix}, -1)}, -2);
    return {ops::linalg_matrix_exp(blocks).narrow(-2, 0, n).narrow(-1, n, n)};
  }
};

// <g, da x b> = <b x g, da>.
struct LinalgCrossBackward final : Node {
  Saved a, b;
  int64_t dim = -1;
  RUSH_SAVED(a, b)
  auto saved_arguments() { return std::tie(a, b, dim); }
  Tensors apply(const Tensors& g) override {
    return {needs(0) ? ops::linalg_cross(b.get().conj(), g[0], dim) : Tensor(),
            needs(1) ? ops::linalg_cross(g[0], a.get().conj(), dim) : Tensor()};
  }
};

}  // namespace

void register_linalg_derivatives(Registry& r) {
  derive<ops::linalg_cross, LinalgCrossBackward>(r);
  derive<ops::linalg_det, LinalgDetBackward>(r);
  derive<ops::linalg_inv, LinalgInvBackward>(r);
  derive<ops::linalg_solve, LinalgSolveBackward>(r);
  derive<ops::linalg_solve_triangular, LinalgSolveTriangularBackward>(r);
  derive<ops::linalg_cholesky, LinalgCholeskyBackward>(r);
  derive<ops::linalg_pinv_atol_rtol_tensor, LinalgPinvBackward>(r);
  derive<ops::linalg_lstsq, LinalgLstsqBackward>(r);
  derive<ops::linalg_matrix_exp, LinalgMatrixExpBackward>(r);
}

}  // namespace rush
