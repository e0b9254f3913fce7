#include <doctest/doctest.h>

#include <cmath>

#include "core/ops/nn/loss.h"
#include "rushlight.h"
#include "tests/ops/nn/nn_testing.h"

namespace {

using namespace rush;
using namespace rush::testing;

struct Reference {
  Doubles each;
  double sum = 0, weight = 0;
};

// Cross entropy of scores (N, C, positions), by its definition; -100 is ignored.
Reference cross_entropy_reference(const Tensor& scores, const Longs& classes, const Doubles& weight, double smoothing) {
  const Doubles x = values(scores);
  const int64_t C = scores.size(1), positions = scores.numel() / (scores.size(0) * C);
  Reference r;
  for (size_t i = 0; i < classes.size(); ++i) {
    const int64_t n = static_cast<int64_t>(i) / positions, p = static_cast<int64_t>(i) % positions;
    const auto score = [&](int64_t c) { return x[(n * C + c) * positions + p]; };
    if (classes[i] == -100) {
      r.each.push_back(0);
      continue;
    }
    double total = 0;
    for (int64_t c = 0; c < C; ++c) total += std::exp(score(c));
    double loss = 0;
    for (int64_t c = 0; c < C; ++c) {
      const double target = (1 - smoothing) * (c == classes[i]) + smoothing / static_cast<double>(C);
      loss += weight[c] * target * (std::log(total) - score(c));
    }
    r.each.push_back(loss);
    r.sum += loss;
    r.weight += weight[classes[i]];
  }
  return r;
}

Tensor classes_tensor(const Longs& classes, IntArrayRef sizes) {
  return tensor(ArrayRef<int64_t>(classes)).view(sizes);
}

TEST_CASE("cross_entropy_loss: classes, weights, smoothing and what is ignored") {
  struct Shape {
    Longs sizes, target_sizes;
    Longs classes;
  };
  const Shape shapes[] = {{{4, 3}, {4}, {0, 2, -100, 1}},
                          {{2, 3, 2}, {2, 2}, {0, -100, 2, 1}},
                          {{1, 3, 2, 2}, {1, 2, 2}, {2, 2, 0, -100}},
                          {{2, 3, 1, 2, 1}, {2, 1, 2, 1}, {1, 1, -100, 0}}};
  const Tensor w = tensor({0.5, 2., 1.25}).to(kFloat64);
  for (const Shape& shape : shapes) {
    const Tensor x = leaf(shape.sizes).detach() * 3, y = classes_tensor(shape.classes, shape.target_sizes);
    for (const bool weighted : {false, true}) {
      for (const double smoothing : {0.0, 0.3}) {
        const OptionalTensor weight = weighted ? OptionalTensor(w) : std::nullopt;
        const Reference r =
            cross_entropy_reference(x, shape.classes, weighted ? values(w) : Doubles{1, 1, 1}, smoothing);
        const auto run = [&](const Tensor& scores, int64_t reduction) {
          const OptionalTensor cast = weight ? OptionalTensor(weight->to(scores.scalar_type())) : std::nullopt;
          return cross_entropy_loss(scores, y, cast, reduction, -100, smoothing);
        };
        CHECK(run(x, Reduction::None).sizes() == IntArrayRef(shape.target_sizes));
        check_close(run(x, Reduction::None), r.each);
        check_close(run(x, Reduction::Sum), {r.sum});
        check_close(run(x, Reduction::Mean), {r.sum / r.weight});
        check_close(run(x.transpose(0, 1).contiguous().transpose(0, 1), Reduction::Mean), {r.sum / r.weight});
        check_close(run(x.to(kFloat32), Reduction::Mean), {r.sum / r.weight}, 1e-5);
        check_close(run(x.to(kBFloat16), Reduction::Mean), {r.sum / r.weight}, 0.05);
      }
    }
  }
  const Tensor one = tensor({1., 2., 3.}).to(kFloat64);
  check_close(cross_entropy_loss(one, scalar_tensor(2, kInt64)),
              {std::log(std::exp(1.) + std::exp(2.) + std::exp(3.)) - 3});
  CHECK(cross_entropy_loss(one, scalar_tensor(2, kInt64), {}, Reduction::None).dim() == 0);
}

TEST_CASE("cross_entropy_loss: many classes, large scores, nothing to count") {
  const Tensor x = leaf({3, 9000}).detach() * 5;
  const Reference r = cross_entropy_reference(x, {7, 8999, 0}, Doubles(9000, 1.0), 0.1);
  check_close(cross_entropy_loss(x, tensor({7, 8999, 0}), {}, Reduction::Mean, -100, 0.1), {r.sum / 3});
  check_close(cross_entropy_loss(x.to(kFloat32), tensor({7, 8999, 0}), {}, Reduction::Mean, -100, 0.1), {r.sum / 3},
              1e-5);
  const Tensor large = tensor({1e5, -1e5}).view({1, 2});
  check_close(cross_entropy_loss(large, tensor({1})), {2e5});
  const double inf = std::numeric_limits<double>::infinity();
  check_close(cross_entropy_loss(tensor({0., -inf}).view({1, 2}), tensor({0})), {0});
  CHECK(cross_entropy_loss(tensor({0., -inf}).view({1, 2}), tensor({1})).item<double>() == inf);
  CHECK(std::isnan(cross_entropy_loss(zeros({2, 3}), tensor({-100, -100})).item<double>()));
  CHECK(std::isnan(cross_entropy_loss(zeros({0, 3}), zeros({0}, kInt64)).item<double>()));
  CHECK(cross_entropy_loss(zeros({0, 3}), zeros({0}, kInt64), {}, Reduction::Sum).item<double>() == 0);
}

TEST_CASE("cross_entropy_loss: where all targets are ignored, first and second derivatives are 0") {
  for (const double smoothing : {0.0, 0.2}) {
    const Tensor x = leaf({2, 3}), loss = cross_entropy_loss(x, tensor({1, 1}), {}, Reduction::Mean, 1, smoothing);
    const Tensor first = autograd::grad({loss}, {x}, {}, /*retain_graph=*/true, /*create_graph=*/true)[0];
    CHECK(equal(first.detach(), zeros({2, 3}, kFloat64)));
    CHECK(equal(autograd::grad({first.sum()}, {x})[0], zeros({2, 3}, kFloat64)));
  }
}

TEST_CASE("cross_entropy_loss: targets of probabilities") {
  const Tensor x = leaf({2, 3, 2}).detach(), w = tensor({0.5, 2., 1.25}).to(kFloat64);
  const Tensor one_hot = zeros({2, 3, 2}, kFloat64), y = tensor({0, 2, 1, 1}).view({2, 2});
  one_hot.scatter_(1, y.unsqueeze(1), 1);
  for (const double smoothing : {0.0, 0.2}) {
    for (const int64_t reduction : {Reduction::None, Reduction::Sum}) {
      check_close(cross_entropy_loss(x, one_hot, w, reduction, -100, smoothing),
                  values(cross_entropy_loss(x, y, w, reduction, -100, smoothing)));
    }
    check_close(cross_entropy_loss(x, one_hot, {}, Reduction::Mean, -100, smoothing),
                values(cross_entropy_loss(x, y, {}, Reduction::Mean, -100, smoothing)));
  }
  CHECK_THROWS_AS(cross_entropy_loss(x, one_hot, {}, Reduction::Mean, 1), ValueError);
}

TEST_CASE("nll_loss: picks scores") {
  const Tensor x = counting({2, 3}), w = tensor({1., 10., 100.}).to(kFloat64);
  check_close(nll_loss(x, tensor({2, 0}), w, Reduction::None), {-200, -3});
  const auto [mean, total] = ops::nll_loss_forward(x, tensor({2, 0}), w, Reduction::Mean, -100);
  check_close(mean, {-203.0 / 101});
  check_close(total, {101});
  check_close(nll_loss(x, tensor({2, 0}), w, Reduction::Mean, 2), {-3});
  check_close(nll_loss(x, tensor({2, 0}).to(kUInt8)), {-2.5});
  check_close(nll_loss2d(counting({1, 2, 2, 2}), tensor({0, 1, 1, 0}).view({1, 2, 2}), {}, Reduction::None),
              {0, -5, -6, -3});
  check_close(nll_loss_nd(counting({1, 2, 3}), tensor({0, 1, 1}).view({1, 3}), {}, Reduction::None), {0, -4, -5});
  const Tensor meta = empty({2, 3}, kMeta);
  CHECK(nll_loss(meta, empty({2}, TensorOptions(kMeta).dtype(kInt64)), {}, Reduction::None).sizes() == IntArrayRef(2));
}

TEST_CASE("losses of classes: first and second derivatives") {
  const Tensor x = leaf({4, 3}), w = tensor({0.5, 2., 1.25}).to(kFloat64), y = tensor({0, 2, -100, 1});
  const Tensor strided = leaf({3, 4}).detach().t().requires_grad_();
  const Tensor image = leaf({1, 3, 2, 2}), image_y = y.view({1, 2, 2});
  for (const int64_t reduction : {Reduction::None, Reduction::Mean, Reduction::Sum}) {
    for (const OptionalTensor& weight : {OptionalTensor(), OptionalTensor(w)}) {
      check_gradients([&](const Tensors& in) { return Tensors{nll_loss(in[0], y, weight, reduction)}; }, {x});
      check_gradients([&](const Tensors& in) { return Tensors{nll_loss_nd(in[0], image_y, weight, reduction)}; },
                      {image});
      for (const double smoothing : {0.0, 0.3}) {
        const auto fn = [&](const Tensors& in) {
          return Tensors{cross_entropy_loss(in[0], y, weight, reduction, -100, smoothing)};
        };
        check_gradients(fn, {x});
        check_gradients(fn, {strided});
      }
    }
    check_gradients(
        [&](const Tensors& in) { return Tensors{cross_entropy_loss(in[0], image_y, w, reduction, -100, 0.3)}; },
        {image});
    check_gradients([&](const Tensors& in) { return Tensors{cross_entropy_loss(in[0], in[1], w, reduction)}; },
                    {x, leaf({4, 3}, 1)});
  }
  check_gradients([](const Tensors& in) { return Tensors{cross_entropy_loss(in[0], scalar_tensor(1, kInt64))}; },
                  {leaf({3})});
}

TEST_CASE("cross_entropy_loss: the fused gradient in lower precision") {
  const Tensor x = leaf({5, 300}), y = tensor({0, 299, 17, -100, 3}), w = leaf({300}, 1).detach() + 2;
  const auto gradient = [&](ScalarType dtype) {
    const Tensor in = x.detach().to(dtype).requires_grad_();
    cross_entropy_loss(in, y, w.to(dtype), Reduction::Mean, -100, 0.1).backward();
    return in.grad();
  };
  const Tensor exact = gradient(kFloat64);
  check_close(gradient(kFloat32), values(exact), 1e-6);
  check_close(gradient(kBFloat16), values(exact), 1e-2);
  CHECK(gradient(kBFloat16).scalar_type() == kBFloat16);
}

TEST_CASE("cross_entropy_gradient_: the sum of the losses, and their gradient in place of the scores") {
  manual_seed(2);
  for (const ScalarType dtype : {kFloat64, kFloat32, kBFloat16}) {
    CAPTURE(str(dtype));
    const double most = dtype == kBFloat16 ? 1e-2 : dtype == kFloat32 ? 1e-5 : 1e-12;
    Tensor scores = (randn({6, 9}, kFloat64) * 3).to(dtype);
    scores.select(1, 8).fill_(-std::numeric_limits<double>::infinity());  // a class that cannot be
    const Tensor target = tensor({1, 7, -100, 0, 0, 3}).to(kInt64);
    const Tensor exact = scores.to(kFloat64).requires_grad_();
    const Tensor expected = cross_entropy_loss(exact, target, {}, Reduction::Sum);
    expected.backward();
    const auto version = scores._version();
    const Tensor loss = cross_entropy_gradient_(scores, target);
    CHECK(scores._version() == version + 1);
    CHECK(loss.scalar_type() == (dtype == kFloat64 ? kFloat64 : kFloat32));
    CHECK(loss.item<double>() == doctest::Approx(expected.item<double>()).epsilon(most));
    CHECK(scores.to(kFloat64).allclose(exact.grad(), most, most));
  }
  // Scores that do not lie row by row, another class to ignore, and none at all.
  Tensor turned = randn({5, 4}, kFloat64).t();
  const Tensor exact = turned.clone().requires_grad_(), target = tensor({4, 0, 2, 2}).to(kInt64);
  cross_entropy_loss(exact, target, {}, Reduction::Sum, 2).backward();
  cross_entropy_gradient_(turned, target, 2);
  CHECK(allclose(turned, exact.grad(), 1e-12, 1e-12));
  Tensor scaled = exact.detach().clone();
  cross_entropy_gradient_(scaled, target, 2, tensor(0.25));
  CHECK(allclose(scaled, exact.grad() / 4, 1e-12, 1e-12));
  Tensor nothing = zeros({0, 3});
  CHECK(cross_entropy_gradient_(nothing, zeros({0}, kInt64)).item<double>() == 0);
}

TEST_CASE("cross_entropy_gradient_: wrong arguments leave the scores as they are") {
  Tensor scores = ones({2, 3});
  const Tensor target = tensor({0, 1}).to(kInt64);
  CHECK_THROWS_AS(cross_entropy_gradient_(scores, target.narrow(0, 0, 1)), ValueError);
  CHECK_THROWS_AS(cross_entropy_gradient_(scores, target.to(kFloat32)), TypeError);
  Tensor repeated = ones({1, 3}).expand({2, 3}), integers = scores.to(kInt64), row = scores[0];
  CHECK_THROWS_AS(cross_entropy_gradient_(repeated, target), ValueError);
  CHECK_THROWS_AS(cross_entropy_gradient_(scores, target, -100, ones({2})), ValueError);
  CHECK_THROWS_AS(cross_entropy_gradient_(integers, target), NotImplementedError);
  CHECK_THROWS_AS(cross_entropy_gradient_(row, target), ValueError);
  CHECK(scores.equal(ones({2, 3})));
}

TEST_CASE("multi-class margin losses") {
  const Tensor x = tensor({0.1, 0.2, 0.4, 0.8, 0.3, 0.3, 0.3, 0.1}, kFloat64).view({2, 4});
  // sum over c != y of max(0, 1 - x[y] + x[c]) / 4
  check_close(multi_margin_loss(x, tensor({3, 0}), 1, 1, {}, Reduction::None), {0.325, (1 + 1 + 0.8) / 4});
  check_close(multi_margin_loss(x, tensor({3, 0}), 2, 1, {}, Reduction::None),
              {(0.09 + 0.16 + 0.36) / 4, (1 + 1 + 0.64) / 4});
  const Tensor w = tensor({2., 1., 1., 3.}).to(kFloat64);
  check_close(multi_margin_loss(x, tensor({3, 0}), 1, 1, w, Reduction::None), {0.975, 1.4});
  check_close(multi_margin_loss(x.select(0, 0), scalar_tensor(3, kInt64)), {0.325});
  check_close(multi_margin_loss(x.select(0, 0).select(0, 0), tensor({0}), 1, 1, {}, Reduction::None), {0});
  // PyTorch's own example.
  check_close(multilabel_margin_loss(x.select(0, 0), tensor({3, 0, -1, 1})), {0.85});
  check_close(multilabel_margin_loss(x, tensor({3, 0, -1, 1, -1, 0, 0, 0}).view({2, 4}), Reduction::None), {0.85, 0});
  check_close(multilabel_margin_loss(x.select(0, 0), tensor({1, 1, -1, 0})), {1.85});
  CHECK_THROWS_AS(multilabel_margin_loss(x.select(0, 0), tensor({1, 4, -1, 0})), IndexError);
  const Tensor in = leaf({2, 4});
  check_gradients([](const Tensors& i) { return Tensors{multi_margin_loss(i[0], tensor({3, 0}), 2)}; }, {in});
  check_gradients([&](const Tensors& i) { return Tensors{multi_margin_loss(i[0], tensor({3, 0}), 1, 0.7, w)}; }, {in});
  check_gradients(
      [](const Tensors& i) {
        return Tensors{multilabel_margin_loss(i[0], tensor({3, 0, -1, 1, 1, -1, 0, 0}).view({2, 4}))};
      },
      {in});
}

TEST_CASE("losses of classes: wrong arguments") {
  const Tensor x = zeros({2, 3}), y = tensor({0, 1});
  CHECK_THROWS_AS(nll_loss(x, tensor({0, 3})), IndexError);
  CHECK_THROWS_AS(nll_loss(x, tensor({0, -1})), IndexError);
  CHECK_THROWS_AS(cross_entropy_loss(x, tensor({0, 3})), IndexError);
  CHECK_THROWS_AS(nll_loss(x, tensor({0, 1, 2})), ValueError);
  CHECK_THROWS_AS(nll_loss(zeros({2, 3, 4}), y), ValueError);
  CHECK_THROWS_AS(nll_loss(x, tensor({0., 1.})), TypeError);
  CHECK_THROWS_AS(nll_loss(x, y, zeros({2})), ValueError);
  CHECK_THROWS_AS(nll_loss(x, y, {}, 3), ValueError);
  CHECK_THROWS_AS(nll_loss(x.to(kInt64), y), NotImplementedError);
  CHECK_THROWS_AS(nll_loss_nd(zeros({2, 3, 4}), zeros({2, 5}, kInt64)), ValueError);
  CHECK_THROWS_AS(cross_entropy_loss(x, y, {}, Reduction::Mean, -100, 1.5), ValueError);
  CHECK_THROWS_AS(cross_entropy_loss(zeros({}), y), ValueError);
  CHECK_THROWS_AS(multi_margin_loss(x, y, 3), ValueError);
  CHECK_THROWS_AS(multilabel_margin_loss(x, y), ValueError);
  CHECK_THROWS_AS(multilabel_margin_loss(zeros({0}), zeros({0}, kInt64)), ValueError);
  CHECK_THROWS_WITH_AS(nll_loss(x, tensor({0, 3})),
                       x.device().is_cpu() ? doctest::Contains("nll_loss: Target 3 is out of bounds")
                                           : doctest::Contains("index 3 is out of bounds for size 3"),
                       IndexError);
}

}  // namespace
