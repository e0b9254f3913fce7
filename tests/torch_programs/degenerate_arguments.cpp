// Functions of ATen at the edge of what they take: tensors without elements or without dimensions, batches that
// broadcast, views with gaps, degrees that are no number, and segments.
#include "show_operators.h"

// NaN prints with a sign on which two libraries need not agree.
static torch::Tensor nan_as_99(const torch::Tensor& tensor) { return torch::where(tensor.isnan(), 99, tensor); }

template <class Call>
static void show_throws(const char* name, const Call& call) {
  try {
    call();
    std::printf("%s does not throw\n", name);
  } catch (const c10::Error&) {
    std::printf("%s throws\n", name);
  }
}

static void without_elements() {
  const auto [factor, info] = torch::linalg_cholesky_ex(wave({2, 0, 0}, 0.1));
  show("cholesky_ex of empty matrices", factor);
  show("info", info);
  show("cholesky_ex of no matrices", std::get<1>(torch::linalg_cholesky_ex(wave({0, 3, 3}, 0.1))));
  show("solve_ex of empty matrices", std::get<0>(torch::linalg_solve_ex(wave({2, 0, 0}, 0.1), wave({2, 0, 3}, 0.1))));
  show("inv_ex of empty matrices", std::get<0>(torch::linalg_inv_ex(wave({2, 0, 0}, 0.1))));
  show("cond of an empty matrix", torch::linalg_cond(wave({0, 5}, 0.1)));
  show("cond of empty matrices", torch::linalg_cond(torch::zeros({2, 0, 0})));
  show_type("cond of complex numbers", torch::linalg_cond(torch::zeros({0, 0}, torch::kComplexDouble)));
  show("cumulative_trapezoid", torch::cumulative_trapezoid(wave({2, 0}, 0.1)));
  show("cumulative_trapezoid at points", torch::cumulative_trapezoid(wave({0}, 0.1), wave({0}, 0.2)));
}

static void without_dimensions() {
  const torch::Tensor self = leaf({}, 0.4), source = leaf({}, 1.7), zero = torch::zeros({1}, torch::kInt64);
  const torch::Tensor reduced = torch::index_reduce(self, 0, zero, source, "prod");
  show("index_reduce", reduced);
  show_gradient(reduced, source);
  show("index_reduce without self", torch::index_reduce(self, 0, zero, source, "amax", /*include_self=*/false));
  show("index_reduce_", self.detach().clone().index_reduce_(0, zero, source.detach(), "mean"));
  show("vander", torch::linalg_vander(self, 3));
  show_gradient(torch::linalg_vander(self, 3), self);
  const torch::Tensor target = torch::zeros({}, torch::kInt64);
  const auto [loss, is_target] = torch::multilabel_margin_loss_forward(self, target, at::Reduction::None);
  show("multilabel_margin_loss_forward", loss);
  show("is_target", is_target);
}

static void broadcast() {
  const torch::Tensor A = wave({2, 2}, 0.5) + 2 * torch::eye(2, torch::kFloat64);
  const auto [solution, cloned] = torch::triangular_solve(wave({3, 2, 1}, 0.2), A);
  show("triangular_solve", solution);
  show("its copy of A", cloned);
  const torch::Tensor x = wave({2, 3}, 0.3);
  show("sum_to_size", x.sum_to_size({2, 1}));
  show_throws("sum_to_size of another size", [&] { x.sum_to_size({2}); });
  show_throws("sum_to_size of more dimensions", [&] { x.sum_to_size({2, 3, 1}); });
  const torch::Tensor square = leaf({2, 2});
  show("the power 0", torch::linalg_matrix_power(square, 0));
  show_gradient(torch::linalg_matrix_power(square, 0), square);
  show("atleast_1d", torch::atleast_1d({wave({}, 0.1), wave({2}, 0.2)}));
  show("atleast_2d", torch::atleast_2d({wave({}, 0.1), wave({2}, 0.2)}));
  show("atleast_3d", torch::atleast_3d({wave({2}, 0.1), wave({2, 2}, 0.2)}));
}

static void views_with_gaps() {
  const torch::Tensor wide = wave({4, 5}, 0.1), part = wide.narrow(1, 0, 4);
  show("view_copy", torch::view_copy(part, {2, 8}));
  show("as_strided_scatter", torch::as_strided_scatter(part, torch::zeros({2, 2}, torch::kFloat64), {2, 2}, {5, 2}));
  const torch::Tensor column = wide.select(1, 1);
  show("into a column", torch::as_strided_scatter(column, torch::zeros({2}, torch::kFloat64), {2}, {10}));
  show("into a transpose", torch::as_strided_scatter(wave({2, 3}, 0.1).t(), wave({2}, 1.1), {2}, {3}));
  torch::Tensor squeezed = wave({1, 2, 1, 3, 1}, 0.6);
  squeezed.squeeze_({0, 3, 4});
  show("squeeze_", squeezed);
}

static void degrees() {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const torch::Tensor x = torch::tensor({0.3, -1.0, 1.0, 1.5, -2.5, 0.25, 0.5}, torch::kFloat64);
  const torch::Tensor n = torch::tensor({2.0, 3.9, nan, 4.0, -0.5, -3.0, 1e20}, torch::kFloat64);
  show("Chebyshev, first kind", torch::special_chebyshev_polynomial_t(x, n));
  show("Chebyshev, second kind", torch::special_chebyshev_polynomial_u(x, n));
  show("Hermite", torch::special_hermite_polynomial_he(x, n));
  show("Laguerre", torch::special_laguerre_polynomial_l(x, n));
  show("Legendre", torch::special_legendre_polynomial_p(x, n));
  const torch::Tensor truth = torch::tensor({true, false, true});
  show("of truth values", torch::special_hermite_polynomial_h(truth, truth));
  show_type("of truth values", torch::special_hermite_polynomial_h(truth, truth));
  const torch::Tensor large = torch::full({2}, 1e30, torch::kFloat64);
  show("far beyond the largest number", nan_as_99(torch::special_legendre_polynomial_p(large, 1000000)));
  const torch::Tensor edge = torch::tensor({-2.0, 0.0, 0.5, 3.0}, torch::kFloat64).requires_grad_();
  const torch::Tensor entropy = torch::special_entr(edge);
  show("entr", entropy);
  show("  gradient", nan_as_99(torch::autograd::grad({entropy.sum()}, {edge})[0]));
}

static void segments() {
  const torch::Tensor data = leaf({6, 2}), lengths = torch::tensor({2, 0, 3, 1});
  for (const char* reduce : {"sum", "mean", "max", "min", "prod"}) {
    std::printf("-- %s\n", reduce);
    const torch::Tensor reduced = torch::segment_reduce(data, reduce, lengths);
    show("segment_reduce", nan_as_99(reduced));
    show_gradient(reduced, data);
    show("from 0.5", torch::segment_reduce(data, reduce, lengths, {}, {}, 0, false, 0.5));
  }
  const torch::Tensor offsets = torch::tensor({{0, 1, 3}, {0, 2, 3}});
  show("between offsets", torch::segment_reduce(wave({2, 3, 2}, 0.2), "sum", {}, {}, offsets, /*axis=*/1));
  show("some elements", torch::segment_reduce(wave({5}, 0.2), "max", {}, {}, torch::tensor({0, 2, 4})));
  show_throws("segment_reduce of lengths that are too short", [&] {
    torch::segment_reduce(data, "sum", torch::tensor({2, 3}));
  });
  show_throws("segment_reduce of a negative length", [&] {
    torch::segment_reduce(data, "sum", torch::tensor({-1, 7}));
  });
  show_throws("segment_reduce of no segments", [&] { torch::segment_reduce(data, "sum"); });
}

int main() {
  without_elements();
  without_dimensions();
  broadcast();
  views_with_gaps();
  degrees();
  segments();
  return 0;
}
