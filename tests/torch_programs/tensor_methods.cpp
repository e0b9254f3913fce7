// Methods of Tensor that stand on operators of ATen, and what tensors say of themselves: linear algebra, scattered
// views, splits, statistics, changes in place, sparse tensors, and random numbers that are drawn one by one.
#include "show.h"

static void show(const char* name, const std::vector<torch::Tensor>& tensors) {
  for (const torch::Tensor& tensor : tensors) show(name, tensor);
}

static void linear_algebra() {
  const torch::Tensor a = wave({3, 3}, 0.3) + torch::eye(3, torch::kFloat64), b = wave({3, 2}, 1.1);
  const torch::Tensor positive = a.matmul(a.t()) + 2 * torch::eye(3, torch::kFloat64);
  show("det", a.det());
  show("logdet", positive.logdet());
  show("slogdet", std::get<1>(a.slogdet()));
  show("inverse", positive.inverse());
  show("pinverse", b.pinverse());
  show("matrix_exp", a.matrix_exp());
  show("matrix_power", a.matrix_power(3));
  show("kron", a.kron(b));
  show("adjoint", b.adjoint());
  show("mH", wave({2, 2, 3}, 0.2).mH());
  show("matrix_H", b.matrix_H());
  show("cholesky", positive.cholesky());
  show("cholesky_solve", b.cholesky_solve(positive.cholesky()));
  show("cholesky_inverse", positive.cholesky().cholesky_inverse());
  const torch::Tensor lu = std::get<0>(torch::linalg_lu_factor(positive));
  show("lu_solve", b.lu_solve(lu, std::get<1>(torch::linalg_lu_factor(positive))));
  show("triangular_solve", std::get<0>(b.triangular_solve(positive)));
  show("svd", std::get<1>(a.svd()));
  show("qr", std::get<1>(b.qr()).abs());
  // Of a square matrix, a tall, a wide and a batch; a column without a tail; numbers that are complex.
  for (const torch::Tensor& matrix : {a, wave({4, 2}, 0.2), wave({2, 4}, 0.2), wave({2, 3, 2}, 0.4)}) {
    const auto [reflectors, tau] = matrix.geqrf();
    show("geqrf", reflectors);
    show("tau", tau);
    show("orgqr", reflectors.narrow(-1, 0, std::min(matrix.size(-1), matrix.size(-2))).orgqr(tau));
  }
  show("geqrf of upper", std::get<1>(torch::geqrf(a.triu())));
  const auto [reflectors, tau] = torch::geqrf(torch::view_as_complex(wave({3, 3, 2}, 0.8).square()));
  show("geqrf of complex", torch::view_as_real(reflectors));
  show("tau", torch::view_as_real(tau));
  show("ormqr", std::get<0>(a.geqrf()).ormqr(std::get<1>(a.geqrf()), b));
}

static void element_wise() {
  const torch::Tensor x = wave({4}, 0.4);
  show("frexp", std::get<0>(x.frexp()));
  show("ldexp", x.ldexp(torch::arange(4)));
  show("mvlgamma", (x + 4).mvlgamma(2));
  torch::Tensor changed = x + 4;
  show("mvlgamma_", changed.mvlgamma_(3));
  changed = x.abs();
  show("float_power_", changed.float_power_(1.5));
  show("float_power_", changed.float_power_(torch::arange(4)));
  try {
    torch::ones({2}).float_power_(2);
  } catch (const std::exception&) {
    std::printf("float_power_ refuses float32\n");
  }
  changed = x.clone();
  show("ldexp_", changed.ldexp_(torch::arange(4)));
  show("hardshrink_backward", x.hardshrink_backward(x + 2, 0.5));
  show("resolve", x.resolve_conj() + x.resolve_neg());
}

static void views_and_statistics() {
  const torch::Tensor x = wave({4, 4}, 0.1), part = wave({2, 4}, 2.0);
  show("as_strided_scatter", x.as_strided_scatter(part, {2, 4}, {4, 1}, 4));
  show("diagonal_scatter", x.diagonal_scatter(wave({4}, 1)));
  show("select_scatter", x.select_scatter(wave({4}, 1), 0, 1));
  show("slice_scatter", x.slice_scatter(part, 0, 1, 3));
  show("narrow_copy", x.narrow_copy(1, 1, 2));
  show("hsplit", x.hsplit(2));
  show("vsplit", x.vsplit({1, 3}));
  show("dsplit", wave({1, 2, 4}, 0).dsplit(2));
  show("unsafe_chunk", x.unsafe_chunk(2));
  show("unsafe_split", x.unsafe_split(3));
  show("unsafe_split_with_sizes", x.unsafe_split_with_sizes({1, 3}));
  show("sum_to_size", x.sum_to_size({1, 4}));
  show("index_reduce", x.index_reduce(0, torch::tensor({0, 0, 2, 1}), x.flip({0}), "prod"));
  torch::Tensor changed = x.clone();
  show("index_reduce_", changed.index_reduce_(0, torch::tensor({0, 1, 1, 1}), x.flip({0}), "mean", false));
  show("nonzero_static", (x > 0).nonzero_static(3));
  show("cov", x.cov());
  show("corrcoef", x.corrcoef());
  show("nanmean", x.sqrt().nanmean());
  show("nanmean", x.sqrt().nanmean({1}, true));
  show("histogram", std::get<0>(x.histogram(4)));
  const torch::Tensor turned = x.t();
  std::printf("expect_contiguous: borrowed %d %d\n", x.expect_contiguous().unsafeIsBorrowed(),
              turned.expect_contiguous().unsafeIsBorrowed());
  show("expect_contiguous", *turned.expect_contiguous());
  std::printf("contiguous %d\n", turned.expect_contiguous()->is_contiguous());
  show("packed_accessor", x.packed_accessor<double, 2>()[1][2]);
}

static void in_place() {
  for (const std::vector<int64_t>& sizes : {std::vector<int64_t>{3, 3}, {7, 3}, {2, 5}, {3, 3, 3}}) {
    torch::Tensor x = torch::zeros(sizes, torch::kFloat64);
    show("fill_diagonal_", x.clone().fill_diagonal_(2));
    show("wrapped", x.clone().fill_diagonal_(2, true));
  }
  torch::Tensor x = wave({6}, 0.2), y = wave({2, 3}, 0.7);
  show("as_strided_", x.clone().as_strided_({2, 2}, {1, 2}, 1));
  torch::Tensor leaf = wave({6}, 0.1).requires_grad_(), view = leaf * 2;
  view.as_strided_({2, 2}, {1, 2}, 1);
  view.sum().backward();
  show("gradient through as_strided_", leaf.grad());
  torch::Tensor z = torch::empty({0}, torch::kFloat64);
  show("set_", z.set_(y));
  std::printf("set to %d %d, alias %d\n", z.is_set_to(y), z.is_set_to(x), z.is_alias_of(y));
  y.add_(1);
  show("set_", z);
  show("set_ with a geometry", z.set_(x, 1, {2, 2}, {2, 1}));
  show("set_ of a storage", z.set_(x.storage(), 2, {3}));
  show("set_ of a whole storage", z.set_(x.storage()));
  show("set_ to nothing", z.set_());
}

static void sparse() {
  const torch::Tensor indices = torch::tensor({{0, 2, 2}, {1, 0, 3}}), values = wave({3}, 0.5);
  const torch::Tensor s = torch::sparse_coo_tensor(indices, values, {3, 4}).coalesce(), dense = wave({4, 2}, 0.1);
  show("smm", s.smm(dense).to_dense());
  std::printf("%d entries\n", static_cast<int>(s.smm(dense)._nnz()));
  const torch::Tensor t = torch::sparse_coo_tensor(indices.clamp_max(1), values, {3, 2}).coalesce();
  show("sspaddmm", t.sspaddmm(s, dense, 0.5, 2).to_dense());
  const torch::Tensor h = torch::hspmm(s, dense);
  show("hspmm", h.to_dense());
  std::printf("%d sparse, %d dense\n", static_cast<int>(h.sparse_dim()), static_cast<int>(h.dense_dim()));
  torch::Tensor grown = s.clone();
  show("sparse_resize_", grown.sparse_resize_({4, 5}, 2, 0).to_dense());
  show("resize_as_sparse_", s.clone().resize_as_sparse_(grown).to_dense());
  grown.sparse_resize_and_clear_({2, 3}, 1, 1);
  show("sparse_resize_and_clear_", grown.to_dense());
  std::printf("%d sparse, %d dense, %d entries\n", static_cast<int>(grown.sparse_dim()),
              static_cast<int>(grown.dense_dim()), static_cast<int>(grown._nnz()));
}

static void random_numbers() {
  torch::manual_seed(5);
  const torch::Tensor rates = torch::tensor({0.0, 0.3, 2.0, 9.5, 10.0, 37.5, 1000.0, 1e6}, torch::kFloat64);
  show("poisson", torch::poisson(rates.repeat({3})));
  show("poisson of float32", torch::poisson(rates.to(torch::kFloat32)));
  const torch::Tensor counts = torch::tensor({0.0, 1.0, 7.0, 30.0, 100.0, 1e5}, torch::kFloat64).unsqueeze(1);
  const torch::Tensor odds = torch::tensor({0.0, 0.05, 0.4, 0.5, 0.75, 1.0}, torch::kFloat64);
  show("binomial", torch::binomial(counts.expand({6, 6}).contiguous(), odds.expand({6, 6}).contiguous()));
  torch::Tensor x = wave({6}, 0.4).requires_grad_(), noise = torch::zeros({6}, torch::kFloat64);
  show("rrelu_with_noise", torch::rrelu_with_noise(x, noise, 0.1, 0.3, true));
  show("noise", noise);
  show("gradient", torch::autograd::grad({torch::rrelu_with_noise(x, noise, 0.1, 0.3, true).sum()}, {x})[0]);
  show("outside of training", torch::rrelu_with_noise(x, noise, 0.1, 0.3, false));
  show("the next number", torch::rand({1}, torch::kFloat64));
}

static void steps_of_modules() {
  const torch::Tensor x = wave({2, 3, 4}, 0.3), scores = wave({2, 4}, 0.1);
  torch::Tensor mean = torch::zeros({3}, torch::kFloat64), variance = torch::ones({3}, torch::kFloat64);
  const auto statistics = torch::batch_norm_update_stats(x, mean, variance, 0.1);
  show("batch_norm_update_stats", {std::get<0>(statistics), std::get<1>(statistics), mean, variance});
  const torch::Tensor target = torch::tensor({{3, 0, -1, 1}, {2, -1, 0, 0}});
  const auto loss = torch::multilabel_margin_loss_forward(scores, target, torch::Reduction::Mean);
  show("multilabel_margin_loss_forward", {std::get<0>(loss), std::get<1>(loss)});
  const torch::Tensor image = wave({1, 2, 5, 5}, 0.2).to(torch::kFloat32), bias = wave({3}, 0.1).to(torch::kFloat32);
  const torch::Tensor kernel = wave({3, 2, 3, 3}, 0.5).to(torch::kFloat32);
  show("mkldnn_convolution", torch::mkldnn_convolution(image, kernel, bias, {1, 1}, {2, 2}, {1, 1}, 1));
}

static void what_tensors_say() {
  const torch::Tensor x = wave({2, 3}, 0.1);
  std::printf("conj %d, neg %d, nested %d, xla %d, mps %d, quantized %d, distributed %d, mkldnn %d, names %d\n",
              x.is_conj(), x.is_neg(), x.is_nested(), x.is_xla(), x.is_mps(), x.is_quantized(), x.is_distributed(),
              x.is_mkldnn(), x.has_names());
  std::printf("one owner %d, weak %d, name '%s'\n", x.is_uniquely_owned(), static_cast<int>(x.weak_use_count()),
              x.name().c_str());
  std::printf("implementation %d\n", x.unsafeGetTensorImpl() == x.getIntrusivePtr().get());
  torch::Tensor moved = x.clone();
  const torch::Tensor same = torch::Tensor::wrap_tensor_impl(moved.unsafeReleaseIntrusivePtr());
  std::printf("released %d\n", !moved.defined());
  show("wrapped again", same);
  std::printf("meta %d\n", x.meta().is_meta());
}

// A module that a program derives from a base of libtorch's.
struct ScaleByStatisticsImpl : torch::nn::NormImplBase<1, ScaleByStatisticsImpl, torch::nn::BatchNormOptions> {
  using torch::nn::NormImplBase<1, ScaleByStatisticsImpl, torch::nn::BatchNormOptions>::NormImplBase;
  torch::Tensor forward(const torch::Tensor& x) { return x * running_var + running_mean; }

 protected:
  void _check_input_dim(const torch::Tensor&) override {}
};

static void derived_modules() {
  torch::nn::AvgPool1d pool(2);
  const torch::nn::AvgPoolImpl<1, torch::nn::AvgPool1dImpl>& base = *pool;
  std::printf("kernel %d\n", static_cast<int>((*base.options.kernel_size())[0]));
  ScaleByStatisticsImpl scale(torch::nn::BatchNormOptions(3));
  show("scaled", scale.forward(torch::ones({2, 3})));
  std::printf("%zu parameters, %zu buffers\n", scale.parameters().size(), scale.buffers().size());
}

int main() {
  linear_algebra();
  element_wise();
  views_and_statistics();
  in_place();
  sparse();
  random_numbers();
  steps_of_modules();
  what_tensors_say();
  derived_modules();
}
