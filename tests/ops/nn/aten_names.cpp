// Functions of compat/ATen that libtorch runs on a GPU only, or whose numbers come from another generator than
// libtorch's, or where libtorch is wrong or rounds more: no program of tests/torch_programs can show them.
#include "ATen/operators/batch_norm.h"
#include "ATen/operators/random_operators.h"
#include "ATen/operators/special_functions.h"
#include "ATen/operators/statistics.h"
#include "tests/ops/nn/nn_testing.h"

namespace {

using namespace rush;
using namespace rush::testing;

void check_same_values(const Tensor& got, const Tensor& want) { CHECK(distance_between(got, want) < 1e-12); }

TEST_CASE("aten names: batch normalisation of two devices' halves is that of the whole batch") {
  const Tensor x = smooth({6, 3, 4}), weight = smooth({3}, kFloat64, 1), bias = smooth({3}, kFloat64, 2);
  const Tensor mean = zeros({3}, kFloat64), variance = ones({3}, kFloat64);
  const Tensor running_mean = mean.clone(), running_variance = variance.clone();
  const auto [want, saved_mean, saved_invstd] = native_batch_norm(x, weight, bias, mean, variance, true, 0.1, 1e-5);
  const Tensor first = x.narrow(0, 0, 4), second = x.narrow(0, 4, 2);
  const auto [mean_1, invstd_1] = batch_norm_stats(first, 1e-5);
  const auto [mean_2, invstd_2] = batch_norm_stats(second, 1e-5);
  const auto [all_mean, all_invstd] =
      batch_norm_gather_stats_with_counts(x, stack({mean_1, mean_2}), stack({invstd_1, invstd_2}), running_mean,
                                          running_variance, 0.1, 1e-5, tensor({16, 8}));
  check_same_values(all_mean, saved_mean);
  check_same_values(all_invstd, saved_invstd);
  check_same_values(running_mean, mean);
  check_same_values(running_variance, variance);
  check_same_values(cat({batch_norm_elemt(first, weight, bias, all_mean, all_invstd, 1e-5),
                         batch_norm_elemt(second, weight, bias, all_mean, all_invstd, 1e-5)}),
                    want);
  const auto halves = x.chunk(2);
  const auto [mean_3, invstd_3] = batch_norm_stats(halves[0], 1e-5);
  const auto [mean_4, invstd_4] = batch_norm_stats(halves[1], 1e-5);
  const auto equal_counts =
      batch_norm_gather_stats(x, stack({mean_3, mean_4}), stack({invstd_3, invstd_4}), {}, {}, 0.1, 1e-5, 12);
  check_same_values(std::get<1>(equal_counts), saved_invstd);
  check_same_values(std::get<0>(cudnn_batch_norm(x, weight, bias, {}, {}, true, 0.1, 1e-5)), want);
  CHECK_THROWS_AS(batch_norm_stats(zeros({3}), 1e-5), ValueError);
}

TEST_CASE("aten names: convolutions and samplers named after a library") {
  const Tensor x = smooth({2, 4, 5, 5}), w = smooth({6, 2, 3, 3}, kFloat64, 1), b = smooth({6}, kFloat64, 2);
  const Tensor conv = conv2d(x, w, {}, {2, 1}, {1, 0}, 1, 2);
  check_same_values(cudnn_convolution(x, w, {1, 0}, {2, 1}, {1, 1}, 2, false, true, false), conv);
  check_same_values(mkldnn_convolution(x, w, b, {1, 0}, {2, 1}, {1, 1}, 2), conv2d(x, w, b, {2, 1}, {1, 0}, 1, 2));
  check_same_values(cudnn_convolution_relu(x, w, b, {2, 1}, {1, 0}, {1, 1}, 2),
                    conv2d(x, w, b, {2, 1}, {1, 0}, 1, 2).relu());
  check_same_values(cudnn_convolution_add_relu(x, w, conv, 0.5, b, {2, 1}, {1, 0}, {1, 1}, 2),
                    (conv2d(x, w, b, {2, 1}, {1, 0}, 1, 2) + conv * 0.5).relu());
  const Tensor transposed = smooth({4, 3, 3, 2}, kFloat64, 3);
  check_same_values(cudnn_convolution_transpose(x, transposed, {1, 1}, {1, 0}, {2, 2}, {1, 1}, 1, false, false, false),
                    conv_transpose2d(x, transposed, {}, {2, 2}, {1, 1}, {1, 0}));
  const Tensor theta = smooth({2, 2, 3}), grid = affine_grid_generator(theta, {2, 4, 5, 5}, true);
  check_same_values(cudnn_affine_grid_generator(theta, 2, 4, 5, 5), grid);
  check_same_values(cudnn_grid_sampler(x, grid), grid_sampler(x, grid, 0, 0, true));
}

TEST_CASE("aten names: Poisson and binomial numbers from our own generator") {
  manual_seed(11);
  constexpr int64_t n = 20000;
  for (const double rate : {0.5, 8.0, 12.0, 300.0}) {
    CAPTURE(rate);
    const Tensor drawn = poisson(full({n}, rate, TensorOptions(kFloat64)));
    CHECK(drawn.mean().item<double>() == doctest::Approx(rate).epsilon(0.03));
    CHECK(drawn.var().item<double>() == doctest::Approx(rate).epsilon(0.06));
    CHECK(values(drawn) == values(drawn.floor()));
  }
  for (const auto& [count, odds] : {std::pair{5.0, 0.3}, {40.0, 0.45}, {40.0, 0.9}, {1000.0, 0.02}}) {
    CAPTURE(count);
    CAPTURE(odds);
    const Tensor drawn = binomial(full({n}, count, TensorOptions(kFloat64)), full({1}, odds, TensorOptions(kFloat64)));
    CHECK(drawn.mean().item<double>() == doctest::Approx(count * odds).epsilon(0.03));
    CHECK(drawn.var().item<double>() == doctest::Approx(count * odds * (1 - odds)).epsilon(0.06));
    CHECK(drawn.max().item<double>() <= count);
  }
  manual_seed(3);
  const Tensor once = poisson(full({8}, 4.0));
  CHECK(values(once) != values(poisson(full({8}, 4.0))));
  manual_seed(3);
  CHECK(values(once) == values(poisson(full({8}, 4.0))));
  CHECK_THROWS_AS(poisson(tensor({-1.0})), ValueError);
  CHECK_THROWS_AS(poisson(tensor({1})), TypeError);
  CHECK_THROWS_AS(binomial(tensor({1}), tensor({0.5})), TypeError);
}

TEST_CASE("aten names: as_strided_scatter differentiates where src lies in a transpose") {
  const Tensor self = smooth({2, 3}).requires_grad_(), src = smooth({2}, kFloat64, 1).requires_grad_();
  const Tensor weights = smooth({3, 2}, kFloat64, 2);
  const Tensor out = as_strided_scatter(self.t(), src, {2}, {3});  // the first row
  const std::vector<Tensor> grads = autograd::grad({out}, {self, src}, {weights});
  check_same_values(grads[1], weights[0]);
  Tensor of_self = weights.clone();
  of_self[0].zero_();
  check_same_values(grads[0], of_self.t());
}

TEST_CASE("aten names: the recurrences of Laguerre and Legendre polynomials round as little as they can") {
  const Tensor x = tensor({-2.0, 0.25, 0.5, 0.875, 3.0, 9.0, 12.0}, kFloat64), degree = tensor({20});
  const Tensor want = special_laguerre_polynomial_l(x, degree);
  const Tensor got = special_laguerre_polynomial_l(x.to(kFloat32), degree);
  CHECK((got.to(kFloat64) - want).abs().div(want.abs()).max().item<double>() < 3e-6);
  CHECK(values(special_legendre_polynomial_p(tensor({-1.0, 1.0}, kFloat32), tensor({99}))) ==
        std::vector<double>{-1, 1});
}

TEST_CASE("aten names: gradient needs a coordinate for each point") {
  const Tensor x = smooth({4, 2}), three = tensor({1.0, 2.0, 4.0}, kFloat64);
  CHECK_THROWS_WITH_AS(gradient(x, TensorList({three}), IntArrayRef({1})), doctest::Contains("coordinates of 2 points"),
                       ValueError);
  CHECK_THROWS_AS(gradient(x, TensorList({three}), IntArrayRef({0})), ValueError);
}

}  // namespace
