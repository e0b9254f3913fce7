#include "nn/init.h"

#include <doctest/doctest.h>

#include <cmath>

#include "rushlight.h"

namespace {

using namespace rush;
namespace init = rush::nn::init;

double deviation(const Tensor& t) {
  const Tensor d = t.detach().to(kFloat64);
  const Tensor centred = d - d.sum() / static_cast<double>(d.numel());
  return std::sqrt((centred * centred).sum().item<double>() / static_cast<double>(d.numel()));
}
double average(const Tensor& t) {
  return t.detach().to(kFloat64).sum().item<double>() / static_cast<double>(t.numel());
}
double largest(const Tensor& t) { return t.detach().abs().max().item<double>(); }

// Uniform within +-bound: the bound is nearly reached and the deviation is bound / sqrt(3).
void check_uniform(const Tensor& t, double bound) {
  CHECK(largest(t) <= bound);
  CHECK(largest(t) > 0.99 * bound);
  CHECK(std::abs(average(t)) < 0.03 * bound);
  CHECK(deviation(t) == doctest::Approx(bound / std::sqrt(3.0)).epsilon(0.03));
}

void check_normal(const Tensor& t, double std) {
  CHECK(std::abs(average(t)) < 0.05 * std);
  CHECK(deviation(t) == doctest::Approx(std).epsilon(0.05));
  CHECK(largest(t) > 2.5 * std);
}

TEST_CASE("modules start with PyTorch's distributions") {
  manual_seed(0);
  nn::Linear linear(100, 200);
  check_uniform(linear->weight, 0.1);
  check_uniform(nn::Linear(16, 5000)->bias, 0.25);
  nn::Conv2d conv(nn::Conv2dOptions(8, 2000, 3).groups(2));
  check_uniform(conv->weight, 1.0 / 6);
  check_uniform(conv->bias, 1.0 / 6);
  nn::Embedding embedding(nn::EmbeddingOptions(500, 20).padding_idx(3));
  check_normal(embedding->weight, 1);
  CHECK(largest(embedding->weight[3]) == 0);
  nn::LSTM lstm(20, 64);
  for (const Tensor& weight : lstm->parameters()) CHECK(largest(weight) <= 0.125);
  check_uniform(lstm->all_weights()[1], 0.125);
  check_uniform(nn::Bilinear(100, 10, 20)->weight, 0.1);
  for (const Tensor& weight : {nn::BatchNorm2d(3)->weight, nn::LayerNorm(nn::LayerNormOptions({3}))->weight}) {
    CHECK(weight.sum().item<double>() == 3);
  }
  CHECK(nn::BatchNorm2d(3)->running_var.sum().item<double>() == 3);
  CHECK(largest(nn::BatchNorm2d(3)->bias) == 0);
}

TEST_CASE("manual_seed fixes the start") {
  const auto weight = [] {
    manual_seed(7);
    return nn::Linear(3, 4)->weight.detach();
  };
  CHECK(largest(weight() - weight()) == 0);
}

TEST_CASE("gains and fans") {
  CHECK(init::calculate_gain(kLinear) == 1);
  CHECK(init::calculate_gain(kConv2D) == 1);
  CHECK(init::calculate_gain(kTanh) == doctest::Approx(5.0 / 3));
  CHECK(init::calculate_gain(kReLU) == doctest::Approx(std::sqrt(2.0)));
  CHECK(init::calculate_gain(kLeakyReLU, 0.5) == doctest::Approx(std::sqrt(1.6)));
  CHECK(init::calculate_gain(kSELU) == 0.75);
  CHECK(init::_calculate_fan_in_and_fan_out(empty({5, 4, 3, 2})) == std::tuple<int64_t, int64_t>(24, 30));
  CHECK_THROWS_AS(init::_calculate_fan_in_and_fan_out(empty(3)), ValueError);
}

TEST_CASE("Xavier's and Kaiming's deviations") {
  manual_seed(1);
  const Tensor t = empty({60, 20, 5}, TensorOptions().requires_grad(true));  // fan in 100, fan out 300
  check_uniform(init::xavier_uniform_(t, 2), 2 * std::sqrt(6.0 / 400));
  check_normal(init::xavier_normal_(t), std::sqrt(2.0 / 400));
  check_uniform(init::kaiming_uniform_(t), std::sqrt(6.0 / 100));
  check_normal(init::kaiming_normal_(t, 0, kFanOut, kReLU), std::sqrt(2.0 / 300));
  CHECK(t.is_leaf());
  CHECK(t.requires_grad());
}

TEST_CASE("simple fillings") {
  manual_seed(2);
  const Tensor t = empty({100, 50});
  check_normal(init::normal_(t, 0, 3), 3);
  check_uniform(init::uniform_(t, -2, 2), 2);
  init::trunc_normal_(t, 0.5, 1, 0, 2);
  CHECK(t.min().item<double>() >= 0);
  CHECK(t.max().item<double>() <= 2);
  CHECK(average(t) == doctest::Approx(0.8556).epsilon(0.03));  // of the normal distribution at 0.5, cut to [0, 2]
  CHECK(init::constant_(t, 1.5).sum().item<double>() == 7500);
  CHECK(init::ones_(t).sum().item<double>() == 5000);
  CHECK(largest(init::zeros_(t)) == 0);
  CHECK(init::eye_(t).sum().item<double>() == 50);
  CHECK(t[49][49].item<double>() == 1);
  CHECK_THROWS_AS(init::eye_(empty(3)), ValueError);
}

TEST_CASE("trunc_normal_ has no numbers at the ends of a range that is many deviations wide") {
  manual_seed(4);
  for (const ScalarType dtype : {kFloat, kHalf, kBFloat16}) {
    const Tensor t = init::trunc_normal_(empty({200000}, dtype), 0, 0.02, -2, 2).to(kDouble);
    CHECK(largest(t) < 0.12);  // six deviations
    CHECK(t.std().item<double>() == doctest::Approx(0.02).epsilon(0.01));
  }
  CHECK_THROWS_AS(init::trunc_normal_(empty(3), 0, 1, 2, -2), ValueError);
  CHECK_THROWS_AS(init::trunc_normal_(empty(3, kLong)), TypeError);
}

TEST_CASE("dirac_ makes a convolution that passes its input on") {
  const Tensor x = randn({2, 4, 5, 5});
  for (int64_t groups : {1, 2}) {
    const Tensor w = init::dirac_(empty({4, 4 / groups, 3, 3}), groups);
    const Tensor y = conv2d(x, w, std::nullopt, 1, 1, 1, groups);
    CHECK(largest(y - x) == 0);
  }
  CHECK_THROWS_AS(init::dirac_(empty({3, 2, 1}), 2), ValueError);
  CHECK_THROWS_AS(init::dirac_(empty({3, 2})), ValueError);
}

TEST_CASE("orthogonal_ makes orthonormal rows or columns") {
  manual_seed(3);
  for (const auto& shape : {std::vector<int64_t>{20, 50}, {50, 20}, {7, 2, 5}}) {
    const Tensor q = init::orthogonal_(empty(shape, kFloat64), 2).reshape({shape[0], -1});
    const Tensor product = q.size(0) <= q.size(1) ? q.mm(q.t()) : q.t().mm(q);
    CHECK(largest(product - init::eye_(empty_like(product)) * 4) < 1e-12);
  }
  // The factor of what was drawn whose other factor has a positive diagonal.
  manual_seed(4);
  const Tensor drawn = randn({30, 20});
  manual_seed(4);
  const Tensor q = init::orthogonal_(empty({30, 20})), r = q.t().mm(drawn);
  CHECK(largest(r.tril(-1)) < 1e-5);
  CHECK(r.diagonal().gt(0).all().item<bool>());
  CHECK_THROWS_AS(init::orthogonal_(empty(3)), ValueError);
  CHECK_THROWS_AS(init::orthogonal_(empty({3, 3}, kComplexFloat)), TypeError);
}

TEST_CASE("clip_grad_norm_ scales all gradients alike") {
  const auto make = [](double first, double second) {
    std::vector<Tensor> params = {zeros(1, TensorOptions().requires_grad(true)),
                                  zeros(1, TensorOptions().requires_grad(true)),
                                  zeros(1, TensorOptions().requires_grad(true))};
    params[0].mutable_grad() = full(1, first);
    params[1].mutable_grad() = full(1, second);
    return params;  // the third has none
  };
  using nn::utils::clip_grad_norm_;
  auto params = make(3, -4);
  CHECK(clip_grad_norm_(params, 1) == doctest::Approx(5));
  CHECK(params[0].grad().item<double>() == doctest::Approx(0.6).epsilon(1e-5));
  CHECK(params[1].grad().item<double>() == doctest::Approx(-0.8).epsilon(1e-5));
  CHECK(clip_grad_norm_(params, 2) == doctest::Approx(1).epsilon(1e-5));
  CHECK(params[0].grad().item<double>() == doctest::Approx(0.6).epsilon(1e-5));
  params = make(3, -4);
  CHECK(clip_grad_norm_(params, 1, std::numeric_limits<double>::infinity()) == 4);
  CHECK(params[0].grad().item<double>() == doctest::Approx(0.75).epsilon(1e-5));
  CHECK(clip_grad_norm_(make(3, -4), 1, 1) == doctest::Approx(7));
  CHECK(clip_grad_norm_(std::vector<Tensor>(), 1) == 0);
  params = make(3, std::nan(""));
  CHECK_THROWS_AS(clip_grad_norm_(params, 1, 2, /*error_if_nonfinite=*/true), Error);
  CHECK(params[0].grad().item<double>() == 3);
  nn::utils::clip_grad_value_(make(3, -4), 2);
  params = make(3, -4);
  nn::utils::clip_grad_value_(params, 2);
  CHECK(params[0].grad().item<double>() == 2);
  CHECK(params[1].grad().item<double>() == -2);
}

TEST_CASE("parameters as one vector, and back") {
  nn::Linear linear(3, 2);
  const Tensor all = nn::utils::parameters_to_vector(linear->parameters());
  CHECK(all.sizes() == IntArrayRef({8}));
  CHECK(all[6].item<double>() == linear->bias[0].item<double>());
  nn::utils::vector_to_parameters(all.detach() * 2, linear->parameters());
  CHECK(linear->bias[0].item<double>() == 2 * all[6].item<double>());
  CHECK_THROWS_AS(nn::utils::vector_to_parameters(ones(7), linear->parameters()), ValueError);
}

}  // namespace
