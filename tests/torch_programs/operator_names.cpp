// Operators of ATen that are second names of others, or that others make: element-wise, views and their copies, splits,
// statistics, integrals, histograms and linear algebra.
#include "show_operators.h"

static void element_wise() {
  const torch::Tensor x = wave({5}, 0.3, 0.9), y = wave({5}, 1.3), above = wave({5}, 0.2).abs() + 1;
  show("arccos", torch::arccos(x));
  show("arccosh", torch::arccosh(above));
  show("arcsin", torch::arcsin(x));
  show("arcsinh", torch::arcsinh(x));
  show("arctan", torch::arctan(x));
  show("arctanh", torch::arctanh(x));
  show("arctan2", torch::arctan2(x, y));
  show("fix", torch::fix(x * 5));
  show("negative", torch::negative(x));
  torch::Tensor changed = x.clone();
  torch::negative_(changed);
  torch::arcsin_(changed);
  show("in place", changed);
  show("greater", torch::greater(x, y));
  show("greater_equal", torch::greater_equal(x, 0.2));
  show("less", torch::less(x, y));
  show("less_equal", torch::less_equal(x, y));
  show("not_equal", torch::not_equal(x, x.roll(1)));
  const torch::Tensor exponents = torch::tensor({-2, 0, 1, 3, 5});
  const torch::Tensor base = leaf({5});
  const torch::Tensor scaled = torch::ldexp(base, exponents);
  show("ldexp", scaled);
  show_gradient(torch::ldexp(base, exponents.to(torch::kFloat64)), base);
  show_type("ldexp of integers", torch::ldexp(exponents, exponents));
  const torch::Tensor numbers =
      torch::tensor({0.0, 1.0, -0.75, 1e-310, 6.5e300, -3.0}, torch::kFloat64).requires_grad_();
  const auto [mantissa, exponent] = torch::frexp(numbers);
  show("frexp", mantissa);
  show("exponent", exponent);
  show_type("exponent", exponent);
  show("frexp of float32", std::get<0>(torch::frexp(torch::tensor({1e-42f, 3.5f, -1e30f}))));
  show("exponents of float16", std::get<1>(torch::frexp(torch::tensor({0.1f, 6e-8f}).to(torch::kFloat16))));
  std::printf("nonzero %d, same size %d, acceptable to cuDNN %d\n", torch::is_nonzero(torch::tensor(3)),
              torch::is_same_size(x, y), torch::cudnn_is_acceptable(x));
  std::printf("equal if defined: %d %d %d\n", torch::equal_if_defined(x, x), torch::equal_if_defined(x, {}),
              torch::equal_if_defined({}, {}));
}

static void transforms_and_layers() {
  const torch::Tensor x = wave({2, 6}, 0.4);
  show("fft_fft", torch::view_as_real(torch::fft_fft(x)));
  show("fft_ifftn", torch::view_as_real(torch::fft_ifftn(torch::fft_fftn(x))));
  show("fft_rfft2", torch::view_as_real(torch::fft_rfft2(x)));
  show("fft_irfft", torch::fft_irfft(torch::fft_rfft(x, 6, 1, "ortho"), 6, 1, "ortho"));
  show("fft_hfft", torch::fft_hfft(torch::fft_ihfft(x)));
  show("fft_fftshift", torch::fft_fftshift(x));
  show("fft_ifftshift", torch::fft_ifftshift(x, 1));
  show("fft_fftfreq", torch::fft_fftfreq(5, 0.5));
  show("fft_rfftfreq", torch::fft_rfftfreq(5));
  const torch::Tensor image = wave({1, 2, 4, 4}, 0.2), volume = wave({1, 1, 3, 3, 3}, 0.2);
  show("reflection_pad1d", torch::reflection_pad1d(wave({1, 2, 3}, 0.1), {1, 2}));
  show("reflection_pad2d", torch::reflection_pad2d(image, {1, 0, 2, 1}));
  show("reflection_pad3d", torch::reflection_pad3d(volume, {1, 0, 1, 0, 0, 1}));
  show("replication_pad1d", torch::replication_pad1d(wave({1, 2, 3}, 0.1), {1, 2}));
  show("replication_pad2d", torch::replication_pad2d(image, {1, 0, 2, 1}));
  show("replication_pad3d", torch::replication_pad3d(volume, {1, 0, 1, 0, 0, 1}));
  show("pad_sequence", torch::pad_sequence({wave({2}, 0.1), wave({4}, 0.2)}, true, -1));
  show("native_channel_shuffle", torch::native_channel_shuffle(wave({1, 4, 2}, 0.1), 2));
  const torch::Tensor grid = wave({1, 2, 2, 2}, 0.4, 0.9);
  show("grid_sampler_2d", torch::grid_sampler_2d(image, grid, 0, 0, true));
  show("grid_sampler_3d", torch::grid_sampler_3d(volume, wave({1, 1, 2, 2, 3}, 0.4, 0.9), 1, 1, false));
  const torch::Tensor weight = wave({3, 2, 2, 2}, 0.5), bias = wave({3}, 0.6);
  show("thnn_conv2d", torch::thnn_conv2d(image, weight, {2, 2}, bias, {2, 2}, {1, 1}));
  show("slow_conv_dilated2d", torch::slow_conv_dilated2d(image, weight, {2, 2}, bias, {1, 1}, {0, 0}, {2, 2}));
  show("slow_conv3d", torch::slow_conv3d(volume, wave({2, 1, 2, 2, 2}, 0.5), {2, 2, 2}, {}, {1, 1, 1}, {0, 0, 0}));
  show("slow_conv_dilated3d",
       torch::slow_conv_dilated3d(volume, wave({2, 1, 2, 2, 2}, 0.5), {2, 2, 2}, {}, {1, 1, 1}, {0, 0, 0}, {2, 2, 2}));
  show("slow_conv_transpose2d",
       torch::slow_conv_transpose2d(image, wave({2, 3, 2, 2}, 0.5), {2, 2}, bias, {2, 2}, {1, 1}, {1, 1}, {1, 1}));
  show("slow_conv_transpose3d", torch::slow_conv_transpose3d(volume, wave({1, 1, 2, 2, 2}, 0.5), {2, 2, 2}, {},
                                                             {1, 1, 1}, {0, 0, 0}, {0, 0, 0}, {1, 1, 1}));
  show("conv_tbc", torch::conv_tbc(wave({4, 2, 3}, 0.1), wave({2, 3, 2}, 0.3), wave({2}, 0.5), 1));
  const torch::Tensor scores = torch::log_softmax(wave({3, 4}, 0.1), 1), target = torch::tensor({1, 0, 3});
  const auto [loss, total] = torch::nll_loss_forward(scores, target, {}, 1, -100);
  show("nll_loss_forward", loss);
  show("total weight", total);
  show("log_sigmoid_forward", std::get<0>(torch::log_sigmoid_forward(x)));
  show("glu_jvp", torch::glu_jvp(torch::glu(x, 1), x, wave({2, 6}, 1.4), 1));
  show("embedding_renorm", torch::embedding_renorm(wave({4, 3}, 0.3, 3), torch::tensor({1, 3, 1}), 0.8, 2));
  torch::manual_seed(3);
  show("uniform", torch::uniform(torch::empty({3}), -1, 2));
  show("exponential", torch::exponential(torch::empty({3})));
  show("log_normal", torch::log_normal(torch::empty({3})));
  show("cauchy", torch::cauchy(torch::empty({3})));
  show("geometric", torch::geometric(torch::empty({3}), 0.3));
  show("random", torch::random(torch::empty({3}), 10));
  show("random between", torch::random(torch::empty({3}), 5, 7));
}

static void views_and_copies() {
  const torch::Tensor x = leaf({2, 3, 4}), matrix = leaf({3, 3}, 0.7);
  show("alias_copy", torch::alias_copy(matrix));
  show("as_strided_copy", torch::as_strided_copy(matrix, {2, 2}, {1, 3}, 1));
  show("detach_copy", torch::detach_copy(matrix));
  show("diagonal_copy", torch::diagonal_copy(x, 1, 1, 2));
  show_gradient(torch::diagonal_copy(matrix), matrix);
  show("expand_copy", torch::expand_copy(matrix.unsqueeze(0), {2, 3, 3}));
  show("narrow_copy", torch::narrow_copy(x, 2, 1, 2));
  show("permute_copy", torch::permute_copy(x, {2, 0, 1}));
  std::printf("contiguous: %d\n", torch::permute_copy(x, {2, 0, 1}).is_contiguous());
  show("select_copy", torch::select_copy(x, 1, 2));
  show("slice_copy", torch::slice_copy(x, 2, 0, 4, 3));
  show_gradient(torch::slice_copy(x, 2, 0, 4, 3), x);
  show("squeeze_copy", torch::squeeze_copy(matrix.unsqueeze(0)));
  show("squeeze_copy of one", torch::squeeze_copy(matrix.unsqueeze(0), 0));
  show("t_copy", torch::t_copy(matrix));
  show("transpose_copy", torch::transpose_copy(matrix, 0, 1));
  show("unfold_copy", torch::unfold_copy(matrix, 0, 2, 1));
  show("unsqueeze_copy", torch::unsqueeze_copy(matrix, 1));
  show("view_copy", torch::view_copy(matrix, {9}));
  show("view_as_complex_copy", torch::view_as_real(torch::view_as_complex_copy(wave({3, 2}, 0.1))));
  show("view_as_real_copy", torch::view_as_real_copy(torch::view_as_complex(wave({3, 2}, 0.1))));
  show("split_copy", torch::split_copy(matrix, 2));
  show("split_with_sizes_copy", torch::split_with_sizes_copy(matrix, {1, 2}, 1));
  show("unbind_copy", torch::unbind_copy(matrix, 1));
  show("unsafe_chunk", torch::unsafe_chunk(matrix, 2));
  show("unsafe_split", torch::unsafe_split(matrix, 2, 1));
  show("unsafe_split_with_sizes", torch::unsafe_split_with_sizes(matrix, {2, 1}));

  const torch::Tensor src = leaf({3}, 2.2);
  show("diagonal_scatter", torch::diagonal_scatter(matrix, src));
  show_gradient(torch::diagonal_scatter(matrix, src), matrix);
  show_gradient(torch::diagonal_scatter(matrix, src), src);
  show("select_scatter", torch::select_scatter(matrix, src, 1, 0));
  show_gradient(torch::select_scatter(matrix, src, 1, 0), src);
  show("slice_scatter", torch::slice_scatter(matrix, leaf({2, 3}), 0, 1));
  show("as_strided_scatter", torch::as_strided_scatter(matrix, leaf({2, 2}), {2, 2}, {1, 3}, 1));

  show("hsplit", torch::hsplit(x, {1, 2}));
  show("hsplit of a vector", torch::hsplit(wave({4}, 0.2), 2));
  show("vsplit", torch::vsplit(x, 2));
  show("dsplit", torch::dsplit(x, 2));
  show("broadcast_tensors", torch::broadcast_tensors({wave({2, 1}, 0.1), wave({3}, 0.2)}));
  show("cartesian_prod", torch::cartesian_prod({torch::arange(2), torch::arange(3)}));
  show("combinations", torch::combinations(wave({4}, 0.1), 2));
  show("combinations of 3", torch::combinations(wave({4}, 0.1), 3));
  show("with replacement", torch::combinations(wave({3}, 0.1), 2, true));
  show("nonzero_static", torch::nonzero_static(torch::eye(3), 4));
  show("cut nonzero_static", torch::nonzero_static(torch::eye(3), 2));
  show("copy", torch::copy(matrix, torch::arange(3)));
  show("zero", torch::zero(matrix));
  show("range", torch::range(1, 4, 1));
  show("range by halves", torch::range(1, 2.75, 0.5, torch::kFloat64));
  show("range of integers", torch::range(5, 0, -2, torch::kInt64));
  show("size and stride", torch::tensor({torch::size(x, 1), torch::stride(x, 0)}));
  show("unique_dim_consecutive", std::get<0>(torch::unique_dim_consecutive(torch::tensor({1, 1, 2, 1}), 0)));
  const torch::Tensor flat = torch::flatten_dense_tensors({wave({2, 2}, 0.1), wave({3}, 0.2)});
  show("flatten_dense_tensors", flat);
  show("unflatten_dense_tensors", torch::unflatten_dense_tensors(flat, {wave({2, 2}, 0), wave({3}, 0)}));
  show("casts", torch::_cast_Float(torch::_cast_Long(wave({3}, 1.5) * 4)) + torch::_cast_Half(torch::ones({1})));
  show("resolve_conj", torch::view_as_real(torch::resolve_conj(torch::view_as_complex(wave({3, 2}, 0.1)).conj())));
  const auto strides = torch::empty_permuted({2, 3, 4}, {2, 0, 1}).strides();
  std::printf("empty_permuted: %lld %lld %lld\n", static_cast<long long>(strides[0]),
              static_cast<long long>(strides[1]), static_cast<long long>(strides[2]));
}

static void statistics() {
  const torch::Tensor x = leaf({3, 5});
  show("cov", torch::cov(x));
  show_gradient(torch::cov(x), x);
  show("cov of one", torch::cov(x.select(0, 1), 0));
  const torch::Tensor counts = torch::tensor({1, 2, 1, 3, 1}), weights = wave({5}, 0.2).abs();
  show("cov with counts", torch::cov(x, 1, counts));
  show("cov with weights", torch::cov(x, 1, {}, weights));
  show("cov with both", torch::cov(x, 2, counts, weights));
  show("cov of integers", torch::cov(torch::arange(6).view({2, 3})));
  show("corrcoef", torch::corrcoef(x));
  show("corrcoef of one", torch::corrcoef(x.select(0, 0)));
  const torch::Tensor complex = torch::view_as_complex(wave({2, 4, 2}, 0.3));
  show("cov of complex", torch::view_as_real(torch::cov(complex)));
  show("corrcoef of complex", torch::view_as_real(torch::corrcoef(complex)));
  const double nan = NAN;
  const torch::Tensor holes = torch::tensor({{1.0, nan, 3.0}, {4.0, 5.5, nan}}, torch::kFloat64).requires_grad_();
  show("nanmean", torch::nanmean(holes));
  show("nanmean of rows", torch::nanmean(holes, 1, true));
  show_gradient(torch::nanmean(holes, 1), holes);

  const torch::Tensor points = torch::tensor({0.0, 0.5, 1.75, 2.0, 4.0}, torch::kFloat64);
  show("trapezoid", torch::trapezoid(x));
  show("trapezoid at points", torch::trapezoid(x, points));
  show_gradient(torch::trapezoid(x, points), x);
  show("trapezoid along 0", torch::trapezoid(x, 0.5, 0));
  show("trapz", torch::trapz(x, points.expand({3, 5}) * 2));
  show("trapz with a step", torch::trapz(x, 2.0, 1));
  show("trapezoid of integers", torch::trapezoid(torch::arange(4), 2));
  show("cumulative_trapezoid", torch::cumulative_trapezoid(x, points));
  show("cumulative_trapezoid by steps", torch::cumulative_trapezoid(x, 3, 0));
  show("gradient", torch::gradient(x));
  show("gradient along 1", torch::gradient(x, std::optional<torch::Scalar>(0.5), 1, 2));
  show("gradient with spacings", torch::gradient(x, std::vector<torch::Scalar>{2, 0.5}));
  show("gradient at points", torch::gradient(x, std::vector<torch::Tensor>{points}, std::vector<int64_t>{1}));
  show("second order", torch::gradient(x, std::vector<torch::Tensor>{points}, std::vector<int64_t>{1}, 2));
  show_gradient(torch::gradient(x, std::optional<torch::Scalar>(0.5), 1)[0], x);

  const torch::Tensor values = torch::tensor({0.1, 1.0, 1.2, 2.0, 3.0, -1.0, 2.999}, torch::kFloat64);
  const torch::Tensor edges = torch::tensor({0.0, 1.0, 1.5, 3.0}, torch::kFloat64);
  const auto [hist, limits] = torch::histogram(values, 4);
  show("histogram", hist);
  show("edges", limits);
  show("histogram of bins", std::get<0>(torch::histogram(values, edges)));
  show("density", std::get<0>(torch::histogram(values, edges, {}, true)));
  show("weighted", std::get<0>(torch::histogram(values, edges, values.abs())));
  const std::vector<double> range{0, 2};
  show("histogram in a range", std::get<0>(torch::histogram(values, 4, range)));
  show("edges of equal values", std::get<1>(torch::histogram(torch::ones({3}, torch::kFloat64), 2)));
  const torch::Tensor pairs = wave({12, 2}, 0.3);
  const auto [hist2, edges2] = torch::histogramdd(pairs, std::vector<int64_t>{2, 3});
  show("histogramdd", hist2);
  show("edges", edges2);
  show("density", std::get<0>(torch::histogramdd(pairs, std::vector<int64_t>{3, 2}, {}, {}, true)));

  const torch::Tensor index = torch::tensor({0, 2, 0}), source = wave({3, 5}, 2.1);
  for (const char* reduce : {"prod", "mean", "amax", "amin"}) {
    show(reduce, torch::index_reduce(x, 0, index, source, reduce));
    show("  without self", torch::index_reduce(x, 0, index, source, reduce, false));
  }
}

static void linear_algebra() {
  const torch::Tensor square = (wave({3, 3}, 0.3) + 2 * torch::eye(3, torch::kFloat64)).requires_grad_();
  const torch::Tensor tall = (wave({4, 3}, 0.5) + torch::eye(4, 3, torch::kFloat64)).requires_grad_();
  const torch::Tensor vector = leaf({3}, 0.8);
  show("matrix_power", torch::matrix_power(square, 5));
  show_gradient(torch::matrix_power(square, 5), square);
  show("power 0", torch::matrix_power(square, 0));
  show("power -2", torch::linalg_matrix_power(square, -2));
  show("linalg_matmul", torch::linalg_matmul(tall, square));
  show("linalg_vecdot", torch::linalg_vecdot(tall, vector));
  show("linalg_diagonal", torch::linalg_diagonal(square));
  show("multi_dot", torch::linalg_multi_dot({vector, square, tall.t(), tall, vector}));
  show("multi_dot of matrices", torch::linalg_multi_dot({tall, square, tall.t(), tall}));
  show("chain_matmul", torch::chain_matmul({tall, square, tall.t()}));
  show("kron", torch::kron(square, wave({2, 1}, 0.1)));
  show("kron of a vector", torch::kron(vector, wave({2, 2}, 0.1)));
  show_gradient(torch::kron(vector, wave({2, 2}, 0.1)), vector);
  show("linalg_vander", torch::linalg_vander(torch::tensor({{1, 2, 3}, {4, 5, 6}})));
  show("vander", torch::vander(wave({3}, 0.4), 4));
  show("vander, increasing", torch::vander(torch::tensor({2, 3}), 3, true));

  show("nuclear_norm", torch::nuclear_norm(tall));
  show("nuclear_norm with dimensions", torch::nuclear_norm(leaf({2, 3, 2}), {0, 2}, true));
  show("frobenius_norm", torch::frobenius_norm(tall, {0, 1}));
  show("cond", torch::linalg_cond(square));
  show("cond of 1", torch::linalg_cond(square, 1));
  show("cond of -2", torch::linalg_cond(tall, -2));
  show("cond of fro", torch::linalg_cond(square, "fro"));
  show("cond of nuc", torch::linalg_cond(square, "nuc"));
  const torch::Tensor rank_two = torch::arange(9, torch::kFloat64).view({3, 3});
  show("matrix_rank", torch::linalg_matrix_rank(rank_two));
  show("rank with a tolerance", torch::linalg_matrix_rank(square, 2.0));
  show("rank with tolerances", torch::linalg_matrix_rank(square, std::optional(0.0), std::optional(0.9)));
  show("rank of Hermitian",
       torch::linalg_matrix_rank(rank_two.matmul(rank_two.t()), std::optional<torch::Tensor>(), {}, true));
  show_type("rank", torch::linalg_matrix_rank(square));

  const torch::Tensor definite = square.matmul(square.t()) + torch::eye(3, torch::kFloat64);
  const torch::Tensor L = torch::cholesky(definite), U = torch::cholesky(definite, true), b = wave({3, 2}, 0.2);
  show("cholesky", L);
  show("upper", U);
  show("cholesky_solve", torch::cholesky_solve(b, L));
  show("cholesky_solve, upper", torch::cholesky_solve(b, U, true));
  show_gradient(torch::cholesky_solve(b, L), square);
  show("cholesky_inverse", torch::cholesky_inverse(L));
  show("cholesky_inverse, upper", torch::cholesky_inverse(U, true));
  const torch::Tensor batch = torch::stack({definite, definite - 9 * torch::eye(3, torch::kFloat64)}).detach();
  show("cholesky_ex", std::get<0>(torch::linalg_cholesky_ex(batch))[0]);
  show("info", std::get<1>(torch::linalg_cholesky_ex(batch)));
  show_type("info", std::get<1>(torch::linalg_cholesky_ex(batch)));
  const auto [Q, R] = torch::qr(tall);
  show("qr", torch::matmul(Q, R));
  show("complete", std::get<0>(torch::qr(tall, false)).abs());
  const auto [u, s, v] = torch::svd(tall);
  show("svd", torch::matmul(u * s, v.t()));
  show("S", s);
  show("without U and V", std::get<0>(torch::svd(tall, true, false)));
  const auto [X, copy] = torch::triangular_solve(b, square);
  show("triangular_solve", X);
  show("the matrix", copy);
  show("transposed", std::get<0>(torch::triangular_solve(b, square, true, true)));
  show("unitriangular", std::get<0>(torch::triangular_solve(b, square, false, false, true)));
  const auto [solution, info] = torch::linalg_solve_ex(square, b);
  show("solve_ex", solution);
  show("info", info);
  show("solve_ex of a vector", std::get<0>(torch::linalg_solve_ex(square, vector)));
  show("inv_ex", std::get<0>(torch::linalg_inv_ex(square)));
  show("info of singular", std::get<1>(torch::linalg_inv_ex(torch::zeros({2, 3, 3}))));
  const torch::Tensor system = wave({2, 3, 6}, 0.4);
  show("tensorsolve",
       torch::linalg_tensorsolve(system + torch::eye(6, torch::kFloat64).view({2, 3, 6}), wave({2, 3}, 1)));
  show("tensorsolve with dims",
       torch::linalg_tensorsolve((wave({6, 6}, 0.4) + torch::eye(6, torch::kFloat64)).view({2, 6, 3}), wave({2, 3}, 1),
                                 std::vector<int64_t>{1}));
  show("tensorinv", torch::linalg_tensorinv((wave({6, 6}, 0.4) + torch::eye(6, torch::kFloat64)).view({6, 2, 3}), 1));
  const torch::Tensor tau = wave({3}, 0.6).abs();
  show("householder_product", torch::linalg_householder_product(tall, tau));
  show_gradient(torch::orgqr(tall, tau), tall);
  show("ormqr", torch::ormqr(tall, tau, wave({4, 2}, 0.2)));
  show("ormqr, transposed", torch::ormqr(tall, tau, wave({4, 2}, 0.2), true, true));
  show("ormqr from the right", torch::ormqr(tall, tau, wave({2, 4}, 0.2), false));
}

int main() {
  element_wise();
  transforms_and_layers();
  views_and_copies();
  statistics();
  linear_algebra();
  std::printf("Metal %d, SYCL %d\n", torch::mps::is_available(), torch::xpu::is_available());
}
