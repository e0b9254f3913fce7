#include "core/ops/nn/loss.h"

#include <doctest/doctest.h>

#include <cmath>
#include <numeric>

#include "rushlight.h"
#include "tests/ops/index/index_testing.h"

namespace {

using namespace rush;
using namespace rush::testing;

using Formula = double (*)(double x, double y);
using Loss = Tensor (*)(const Tensor& self, const Tensor& target, int64_t reduction);

struct LossCase {
  const char* name;
  Loss loss;
  Formula formula;
};

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
double square(double x) { return x * x; }

const LossCase kLossCases[] = {
    {"mse", [](const Tensor& x, const Tensor& y, int64_t r) { return mse_loss(x, y, r); },
     [](double x, double y) { return square(x - y); }},
    {"l1", [](const Tensor& x, const Tensor& y, int64_t r) { return l1_loss(x, y, r); },
     [](double x, double y) { return std::abs(x - y); }},
    {"smooth l1", [](const Tensor& x, const Tensor& y, int64_t r) { return smooth_l1_loss(x, y, r, 0.5); },
     [](double x, double y) { return std::abs(x - y) < 0.5 ? square(x - y) : std::abs(x - y) - 0.25; }},
    {"smooth l1, beta 0", [](const Tensor& x, const Tensor& y, int64_t r) { return smooth_l1_loss(x, y, r, 0); },
     [](double x, double y) { return std::abs(x - y); }},
    {"huber", [](const Tensor& x, const Tensor& y, int64_t r) { return huber_loss(x, y, r, 0.75); },
     [](double x, double y) { return std::abs(x - y) <= 0.75 ? square(x - y) / 2 : 0.75 * (std::abs(x - y) - 0.375); }},
    {"soft margin", [](const Tensor& x, const Tensor& y, int64_t r) { return soft_margin_loss(x, y, r); },
     [](double x, double y) { return std::log1p(std::exp(-x * y)); }},
    {"binary cross entropy",
     [](const Tensor& x, const Tensor& y, int64_t r) {
       return binary_cross_entropy(x * 0.4 + 0.5, (y * 0.5 + 0.5).expand(x.sizes()), {}, r);
     },
     [](double x, double y) {
       const double p = x * 0.4 + 0.5, q = y * 0.5 + 0.5;
       return -(q * std::log(p) + (1 - q) * std::log(1 - p));
     }},
    {"binary cross entropy with logits",
     [](const Tensor& x, const Tensor& y, int64_t r) { return binary_cross_entropy_with_logits(x * 3, y, {}, {}, r); },
     [](double x, double y) { return -(y * std::log(sigmoid(3 * x)) + (1 - y) * std::log(1 - sigmoid(3 * x))); }},
    {"kl div", [](const Tensor& x, const Tensor& y, int64_t r) { return kl_div(x, y + 1.5, r); },
     [](double x, double y) { return (y + 1.5) * (std::log(y + 1.5) - x); }},
    {"kl div of logarithms", [](const Tensor& x, const Tensor& y, int64_t r) { return kl_div(x, y, r, true); },
     [](double x, double y) { return std::exp(y) * (y - x); }},
    {"poisson",
     [](const Tensor& x, const Tensor& y, int64_t r) { return poisson_nll_loss(x, y, true, false, 1e-8, r); },
     [](double x, double y) { return std::exp(x) - y * x; }},
    {"poisson, full",
     [](const Tensor& x, const Tensor& y, int64_t r) { return poisson_nll_loss(x + 2, y + 1.2, false, true, 1e-8, r); },
     [](double x, double y) {
       const double p = x + 2, q = y + 1.2;
       const double stirling = q * std::log(q) - q + 0.5 * std::log(2 * M_PI * q);
       return p - q * std::log(p + 1e-8) + (q > 1 ? stirling : 0);
     }},
};

TEST_CASE("losses of single elements: values, reductions and dtypes") {
  const Tensor x = leaf({5, 7}).detach(), y = leaf({5, 7}, 0.8).detach();
  const Doubles xs = values(x), ys = values(y);
  for (const LossCase& c : kLossCases) {
    CAPTURE(c.name);
    Doubles expected;
    for (size_t i = 0; i < xs.size(); ++i) expected.push_back(c.formula(xs[i], ys[i]));
    const double sum = std::accumulate(expected.begin(), expected.end(), 0.0);
    const auto check = [&](const Tensor& a, const Tensor& b, double tolerance) {
      const Doubles each = values(c.loss(a, b, Reduction::None));
      REQUIRE(each.size() == expected.size());
      for (size_t i = 0; i < each.size(); ++i) CHECK(each[i] == doctest::Approx(expected[i]).epsilon(tolerance));
      CHECK(c.loss(a, b, Reduction::Sum).item<double>() == doctest::Approx(sum).epsilon(tolerance));
      CHECK(c.loss(a, b, Reduction::Mean).item<double>() == doctest::Approx(sum / 35).epsilon(tolerance));
    };
    check(x, y, 1e-7);
    check(x.t().contiguous().t(), y, 1e-7);
    check(x.to(kFloat32), y.to(kFloat32), 1e-4);
    CHECK(c.loss(x.to(kBFloat16), y.to(kBFloat16), Reduction::Mean).scalar_type() == kBFloat16);
    CHECK(c.loss(x.select(0, 0).select(0, 0), y.select(0, 0).select(0, 0), Reduction::Mean).dim() == 0);
    CHECK(c.loss(zeros({0, 3}), zeros({0, 3}), Reduction::None).sizes() == IntArrayRef({0, 3}));
    CHECK(c.loss(empty({4, 3}, kMeta), empty({4, 3}, kMeta), Reduction::Mean).sizes().empty());
    CHECK_THROWS_AS(c.loss(x, y, 3), ValueError);
    CHECK_THROWS_AS(c.loss(x, zeros({4}, kFloat64), Reduction::Mean), ValueError);
  }
}

TEST_CASE("losses of single elements: first and second derivatives") {
  const Tensor x = leaf({2, 3}), y = leaf({2, 3}, 0.8), row = leaf({3}, 0.8),
               strided = leaf({3, 2}).detach().t().requires_grad_();
  for (const LossCase& c : kLossCases) {
    CAPTURE(c.name);
    for (const int64_t reduction : {Reduction::None, Reduction::Mean, Reduction::Sum}) {
      const auto fn = [&](const Tensors& in) { return Tensors{c.loss(in[0], in[1], reduction)}; };
      check_gradients(fn, {x, y});
      check_gradients(fn, {strided, row});
    }
  }
}

TEST_CASE("losses: an infinitely wrong answer stays finite where PyTorch's does") {
  const Tensor p = tensor({0., 1., 0., 1.}), q = tensor({0., 1., 1., 0.});
  CHECK(values(binary_cross_entropy(p, q, {}, Reduction::None)) == Doubles{0, 0, 100, 100});
  CHECK_THROWS_AS(binary_cross_entropy(tensor({1.5}), tensor({1.})), ValueError);
  CHECK_THROWS_AS(binary_cross_entropy(tensor({-0.1}), tensor({1.})), ValueError);
  const Tensor column = full({3, 1}, 0.25, requires_grad()), labels = tensor({1., 0., 1.});
  const Tensor by_column = binary_cross_entropy(column, labels.unsqueeze(1), {}, Reduction::None);
  CHECK(equal(binary_cross_entropy(column, labels, {}, Reduction::None), by_column));
  binary_cross_entropy(column, labels, {}, Reduction::Sum).backward();
  CHECK(values(column.grad()) == values((column - labels.unsqueeze(1)) / (column * (1 - column))));
  CHECK_THROWS_AS(nn::functional::binary_cross_entropy(column, labels), ValueError);
  CHECK_THROWS_WITH_AS(binary_cross_entropy(full({1, 3}, 0.5), full({2, 1}, 0.5)),
                       "binary_cross_entropy: expected a target of the input's shape (1, 3), got (2, 1)", ValueError);
  const Tensor logits = tensor({-1000., 1000.});
  CHECK(values(binary_cross_entropy_with_logits(logits, tensor({1., 0.}), {}, {}, Reduction::None)) ==
        Doubles{1000, 1000});
}

TEST_CASE("binary cross entropy: weights") {
  const Tensor x = leaf({2, 3}).detach(), y = leaf({2, 3}, 0.8).detach() * 0.5 + 0.5,
               w = tensor({1., 2., 3.}).to(kFloat64);
  const Tensor probability = x * 0.4 + 0.5;
  CHECK(values(binary_cross_entropy(probability, y, w, Reduction::None)) ==
        values(binary_cross_entropy(probability, y, {}, Reduction::None) * w));
  const Doubles got = values(binary_cross_entropy_with_logits(x, y, w, w, Reduction::None));
  for (size_t i = 0; i < 6; ++i) {
    const double s = sigmoid(values(x)[i]), t = values(y)[i], weight = values(w)[i % 3];
    CHECK(got[i] == doctest::Approx(-weight * (weight * t * std::log(s) + (1 - t) * std::log(1 - s))));
  }
  check_gradients(
      [&](const Tensors& in) { return Tensors{binary_cross_entropy(in[0] * 0.4 + 0.5, in[1] * 0.5 + 0.5, w)}; },
      {leaf({2, 3}), leaf({2, 3}, 0.8)});
  check_gradients([&](const Tensors& in) { return Tensors{binary_cross_entropy_with_logits(in[0], in[1], w, in[2])}; },
                  {leaf({2, 3}), leaf({2, 3}, 0.8), leaf({3}, 1)});
}

TEST_CASE("losses of pairs and triples") {
  const Tensor a = tensor({1., 2., -1.}).to(kFloat64), b = tensor({0., 3., 1.}).to(kFloat64),
               y = tensor({1., -1., 1.}).to(kFloat64);
  CHECK(values(margin_ranking_loss(a, b, y, 0.5, Reduction::None)) == Doubles{0, 0, 2.5});
  CHECK(margin_ranking_loss(tensor({1, 2}), tensor({0, 3}), tensor({1, 1}), 1).scalar_type() == kFloat32);
  CHECK(values(hinge_embedding_loss(a, y, 1, Reduction::None)) == Doubles{1, 0, -1});
  CHECK(values(hinge_embedding_loss(tensor({0.25, 3.}), tensor({-1., -1.}), 1, Reduction::None)) == Doubles{0.75, 0});
  const Tensor left = tensor({1., 0., 3., 4.}).view({2, 2}).to(kFloat64),
               right = tensor({1., 1., 4., 3.}).view({2, 2}).to(kFloat64);
  const Doubles angles = values(cosine_embedding_loss(left, right, tensor({1, -1}), 0.5, Reduction::None));
  CHECK(angles[0] == doctest::Approx(1 - 1 / std::sqrt(2.0)));
  CHECK(angles[1] == doctest::Approx(24.0 / 25 - 0.5));
  CHECK(cosine_embedding_loss(left.select(0, 1), right.select(0, 1), scalar_tensor(-1)).item<double>() ==
        doctest::Approx(24.0 / 25));
  const Doubles triplets =
      values(triplet_margin_loss(left, right, zeros({2, 2}, kFloat64), 1, 2, 0, false, Reduction::None));
  CHECK(triplets[0] == doctest::Approx(1));
  CHECK(triplets[1] == doctest::Approx(0));
  const Tensor swapped = triplet_margin_loss(left, right, full({2, 2}, 0.5, kFloat64), 9, 2, 0, true, Reduction::None);
  CHECK(values(swapped)[0] == doctest::Approx(10 - std::sqrt(0.5)));
  CHECK_THROWS_AS(margin_ranking_loss(a, b, left), ValueError);
  CHECK_THROWS_AS(cosine_embedding_loss(left, right, left), ValueError);
  CHECK_THROWS_AS(cosine_embedding_loss(a, b, y), ValueError);
  CHECK_THROWS_AS(triplet_margin_loss(left, right, a), ValueError);
}

TEST_CASE("losses of pairs and triples: first and second derivatives") {
  const Tensor a = leaf({3, 2}), b = leaf({3, 2}, 0.8), c = leaf({3, 2}, 2), y = tensor({1., -1., 1.}).to(kFloat64);
  const Tensor signs = tensor({1., -1., 1., -1., 1., 1.}).to(kFloat64).view({3, 2});
  check_gradients([&](const Tensors& in) { return Tensors{margin_ranking_loss(in[0], in[1], signs, 0.3)}; }, {a, b});
  check_gradients([&](const Tensors& in) { return Tensors{hinge_embedding_loss(in[0], signs, 0.3)}; }, {a});
  check_gradients([&](const Tensors& in) { return Tensors{cosine_embedding_loss(in[0], in[1], y, -0.9)}; }, {a, b});
  check_gradients([](const Tensors& in) { return Tensors{triplet_margin_loss(in[0], in[1], in[2])}; }, {a, b, c});
  check_gradients([](const Tensors& in) { return Tensors{triplet_margin_loss(in[0], in[1], in[2], 1, 2, 1e-6, true)}; },
                  {a, b, c});
}

}  // namespace
