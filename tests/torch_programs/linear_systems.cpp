// Linear algebra: einsum, tensordot, decompositions, solvers, norms, and gradients through them.
#include "show.h"

using torch::linalg_cholesky;

static torch::Tensor spd(int64_t n) {  // symmetric, positive definite
  auto a = wave({n, n}, 0.4);
  return a.mm(a.t()) + torch::eye(n, torch::kFloat64) * n;
}

int main() {
  const auto a = wave({3, 4}, 0.1), b = wave({4, 2}, 0.8), v = wave({3}, 1.9);
  show("matrix product", torch::einsum("ij,jk->ik", {a, b}) - a.mm(b));
  show("trace", torch::einsum("ii", {spd(3)}));
  show("batched", torch::einsum("bij,bjk->bik", {wave({2, 2, 3}, 0.2), wave({2, 3, 2}, 0.5)}));
  show("bilinear", torch::einsum("bn,anm,bm->ba", {wave({2, 3}, 0.2), wave({4, 3, 2}, 0.6), wave({2, 2}, 1.0)}));
  show("outer", torch::einsum("i,j", {v, wave({2}, 0.3)}));
  show("ellipsis", torch::einsum("...ij->...ji", {wave({1, 2, 2}, 0.3)}));
  show("tensordot", torch::tensordot(wave({2, 3, 4}, 0.1), wave({4, 3}, 0.9), {1, 2}, {1, 0}));
  show("kron", torch::kron(torch::eye(2, torch::kFloat64), wave({1, 2}, 0.5)));
  show("chain", torch::chain_matmul({a, b, wave({2, 2}, 0.7)}) - torch::linalg_multi_dot({a, b, wave({2, 2}, 0.7)}));

  const auto m = spd(3);
  show("det", torch::linalg_det(m));
  auto [sign, logdet] = torch::linalg_slogdet(m);
  show("slogdet", sign * logdet);
  show("inverse", torch::linalg_inv(m).mm(m) - torch::eye(3, torch::kFloat64));
  show("cholesky", linalg_cholesky(m));
  show("solve", torch::linalg_solve(m, v, /*left=*/true));
  show("cholesky_solve", torch::cholesky_solve(v.unsqueeze(1), torch::linalg_cholesky(m)));
  show("triangular", torch::linalg_solve_triangular(m.triu(), v.unsqueeze(1), /*upper=*/true, /*left=*/true,
                                                    /*unitriangular=*/false));
  auto [q, r] = torch::linalg_qr(a.t(), "reduced");
  show("Q R", q.mm(r) - a.t());
  auto [u, s, vh] = torch::linalg_svd(a, /*full_matrices=*/false, c10::nullopt);
  show("singular values", s);
  show("U S V", u.mm(s.diag()).mm(vh) - a);
  auto [values, vectors] = torch::linalg_eigh(m, "L");
  show("eigenvalues", values);
  show("A V", m.mm(vectors) - vectors * values);
  show("of a general matrix", std::get<0>(torch::linalg_eig(wave({3, 3}, 0.2))).abs().sum());
  show("eigvalsh", torch::linalg_eigvalsh(m, "U"));
  show("svdvals", torch::linalg_svdvals(a, c10::nullopt));
  auto [lu, pivots] = torch::linalg_lu_factor(m, /*pivot=*/true);
  show("lu_solve", torch::linalg_lu_solve(lu, pivots, v.unsqueeze(1), true, false));
  auto [p, l, upper] = torch::linalg_lu(m, true);
  show("P L U", p.mm(l).mm(upper) - m);
  auto least = torch::linalg_lstsq(wave({5, 2}, 0.3), wave({5, 1}, 1.2), c10::nullopt, c10::nullopt);
  show("least squares", std::get<0>(least));
  show("pseudo inverse",
       torch::linalg_pinv(a, 1e-12, false).mm(a).mm(torch::linalg_pinv(a, 1e-12, false)) - torch::pinverse(a));
  show("rank", torch::linalg_matrix_rank(torch::ones({3, 3}, torch::kFloat64), 1e-9, false));
  show("power", torch::linalg_matrix_power(m, 3) - m.mm(m).mm(m));
  show("exponential", torch::matrix_exp(m * 0.01));
  show("norms", torch::stack({torch::linalg_norm(a, "fro", c10::nullopt, false, c10::nullopt),
                              torch::linalg_norm(a, "nuc", c10::nullopt, false, c10::nullopt),
                              torch::linalg_vector_norm(a, 3, c10::nullopt, false, c10::nullopt),
                              torch::linalg_matrix_norm(a, 1, {-2, -1}, false, c10::nullopt),
                              torch::linalg_cond(m, c10::nullopt)}));
  show("cross", torch::linalg_cross(v, wave({3}, 0.2), -1));
  show("distances", torch::cdist(a, wave({2, 4}, 1.1), 2.0));
  show("householder", torch::linalg_householder_product(wave({3, 2}, 0.4), wave({2}, 0.9)));
  show("vander", torch::vander(v));
  show("block_diag", torch::block_diag({torch::ones({1, 2}), torch::full({2, 1}, 3.0)}));

  // Gradients.
  auto x = spd(3).requires_grad_();
  auto y = torch::linalg_slogdet(x);
  std::get<1>(y).backward();
  show("of log det, against the inverse", x.grad() - torch::linalg_inv(x.detach()).t());
  x.mutable_grad() = torch::Tensor();
  torch::linalg_solve(x, v, true).sum().backward();
  show("of a solution", x.grad());
  x.mutable_grad().zero_();
  torch::linalg_eigvalsh(x, "L").max().backward();
  show("of the largest eigenvalue", x.grad());
  try {
    torch::linalg_cholesky(-m);
  } catch (const c10::Error& e) {
    std::printf("%d\n", static_cast<int>(std::string(e.what()).find("not positive-definite") != std::string::npos));
  }
  try {
    torch::linalg_inv(torch::zeros({2, 2}));
  } catch (const c10::LinAlgError& e) {
    std::printf("%d\n", static_cast<int>(std::string(e.what()).find("singular") != std::string::npos));
  }
  return 0;
}
