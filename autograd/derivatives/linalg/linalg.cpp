// Equations, determinants and Cholesky factors. Sources of the formulas: M. Giles, "An extended collection of matrix
// derivative results for forward and reverse mode algorithmic differentiation" (2008), and PyTorch's FunctionsManual.
#include "core/ops/linalg/linalg.h"

#include "autograd/derivatives/register.h"
#include "autograd/derive.h"
#include "core/ops/factory/factories.h"
#include "core/ops/factory/range.h"
#include "core/ops/index/masked.h"
#include "core/ops/linalg/matmul.h"
#include "core/ops/pointwise/binary.h"
#include "core/ops/pointwise/compare.h"
#include "core/ops/pointwise/complex.h"
#include "core/ops/pointwise/unary.h"
#include "core/ops/reduce/reduce.h"
#include "core/ops/view/triangular.h"
#include "core/ops/view/view.h"

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

struct LinalgInvBackward final : Node {  // d A^-1 = -A^-H G A^-H
  Saved result;
  RUSH_SAVED(result)
  void save_output(const Tensor& out) { result = Saved::output(out, this); }
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
    vector = b.dim() == 1 ||
             (b.dim() == matrix.dim() - 1 && b.sizes() == matrix.sizes().slice(0, matrix.sizes().size() - 1));
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
  void save(const Tensor& matrix, const Tensor&, bool is_upper, bool from_left, bool unitriangular) {
    a = matrix;
    upper = is_upper;
    left = from_left;
    unit = unitriangular;
  }
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

}  // namespace

void register_linalg_derivatives(Registry& r) {
  derive<ops::linalg_det, LinalgDetBackward>(r);
  derive<ops::linalg_inv, LinalgInvBackward>(r);
  derive<ops::linalg_solve, LinalgSolveBackward>(r);
  derive<ops::linalg_solve_triangular, LinalgSolveTriangularBackward>(r);
  derive<ops::linalg_cholesky, LinalgCholeskyBackward>(r);
}

}  // namespace rush
