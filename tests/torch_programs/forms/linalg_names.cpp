// torch::linalg, which libtorch has up to its release 2.8, and at::linalg_... since.
#include <torch/torch.h>

#include <iostream>
#include <string>

#if __has_include(<torch/linalg.h>)
#include <torch/linalg.h>
#define LINALG(name) torch::linalg::name
#else
#define LINALG(name) at::linalg_##name
#endif

static void show(const torch::Tensor& x) { std::cout << (x.dim() == 0 ? x.reshape({1}) : x) << "\n"; }
static void same(const torch::Tensor& a, const torch::Tensor& b) { std::cout << a.allclose(b) << "\n"; }

static void decompositions(const torch::Tensor& a, const torch::Tensor& positive) {
  const torch::Tensor lower = LINALG(cholesky)(positive);
  show(lower);
  same(LINALG(cholesky)(positive, true), lower.t());
  const auto [values, vectors] = LINALG(eigh)(positive, "L");
  show(values);
  show(LINALG(eigvalsh)(positive, "U"));
  show(vectors.abs());
  const auto [complex_values, complex_vectors] = LINALG(eig)(positive);
  show(std::get<0>(at::real(complex_values).sort()));
  std::cout << complex_vectors.sizes() << "\n";
  show(std::get<0>(at::real(LINALG(eigvals)(positive)).sort()));
  const auto [u, s, vh] = LINALG(svd)(a, false, std::nullopt);
  std::cout << u.sizes() << vh.sizes() << "\n";
  show(s);
  show(LINALG(svdvals)(a, std::nullopt));
  const auto [q, r] = LINALG(qr)(a);
  same(q.matmul(r), a);
  const auto [p, l, upper] = LINALG(lu)(positive, true);
  same(p.matmul(l).matmul(upper), positive);
  show(std::get<1>(LINALG(lu_factor)(positive, true)));
  const auto [reflectors, tau] = at::geqrf(a);
  show(LINALG(householder_product)(reflectors, tau));
}

static void equations(const torch::Tensor& a, const torch::Tensor& positive) {
  show(LINALG(det)(positive));
  show(LINALG(inv)(positive));
  show(LINALG(matrix_exp)(a / 4));
  const auto [sign, log_of_size] = LINALG(slogdet)(positive);
  show(sign);
  show(log_of_size);
  show(LINALG(solve)(positive, a, true));
  show(LINALG(solve_triangular)(positive, a, true, true, false));
  show(std::get<0>(LINALG(lstsq)(positive, a, std::nullopt, std::nullopt)));
  show(LINALG(pinv)(a, 1e-15, false));
  show(LINALG(tensorsolve)(positive.reshape({3, 3, 1}), a.select(1, 0), std::nullopt));
  show(LINALG(tensorinv)(positive.reshape({3, 1, 3}), 2));
  torch::Tensor inverse = torch::empty({3, 3}, torch::kDouble);
  LINALG(inv_out)(inverse, positive);
  show(inverse);
}

static void norms(const torch::Tensor& a) {
  show(LINALG(norm)(a));
  show(LINALG(norm)(a, 2, {1}));
  show(LINALG(norm)(a, "fro"));
  show(LINALG(norm)(a, std::string("nuc"), {{0, 1}}, true, torch::kDouble));
  show(LINALG(vector_norm)(a, 2, 1, true, torch::nullopt));
  show(LINALG(matrix_norm)(a, 1));
  show(LINALG(matrix_norm)(a, "fro", {0, 1}));
  show(LINALG(matrix_rank)(a, 1e-5, false));
  show(LINALG(matrix_rank)(a, std::nullopt, 1e-5, false));
  show(LINALG(matrix_power)(a, 3));
  show(LINALG(multi_dot)({a, a, a}));
}

int main() {
  const torch::Tensor a = torch::arange(9, torch::kDouble).reshape({3, 3}).sin() + torch::eye(3, torch::kDouble);
  const torch::Tensor positive = a.mm(a.t()) + torch::eye(3, torch::kDouble);
  decompositions(a, positive);
  equations(a, positive);
  norms(a);
}
