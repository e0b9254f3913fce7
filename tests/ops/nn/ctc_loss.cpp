#include "core/ops/nn/ctc_loss.h"

#include <doctest/doctest.h>

#include <cmath>

#include "rushlight.h"
#include "tests/not_finite.h"
#include "tests/ops/index/index_testing.h"

namespace {

using namespace rush;
using namespace rush::testing;

// The labels that a way through the classes reads as: repetitions are one, blanks none.
Longs read(const Longs& way, int64_t blank) {
  Longs labels;
  for (size_t t = 0; t < way.size(); ++t) {
    if (way[t] != blank && (t == 0 || way[t] != way[t - 1])) labels.push_back(way[t]);
  }
  return labels;
}

// By the definition: the sum of the probabilities of all ways of `steps` classes that read as the labels.
double by_definition(const Tensor& log_probs, int64_t steps, const Longs& labels, int64_t blank) {
  const int64_t classes = log_probs.size(1);
  const Doubles p = values(log_probs.exp());
  double total = 0;
  const auto ways = static_cast<int64_t>(std::pow(classes, steps));
  for (int64_t code = 0; code < ways; ++code) {
    Longs way;
    double probability = 1;
    for (int64_t t = 0, rest = code; t < steps; ++t, rest /= classes) {
      way.push_back(rest % classes);
      probability *= p[static_cast<size_t>(t * classes + way.back())];
    }
    if (read(way, blank) == labels) total += probability;
  }
  return -std::log(total);
}

Tensor scores(IntArrayRef sizes) { return log_softmax(leaf(sizes) * 2, -1).detach(); }

TEST_CASE("ctc_loss: all ways that read as the target") {
  struct Case {
    int64_t steps, blank;
    Longs labels;
  };
  const Case cases[] = {{5, 0, {1, 2}}, {5, 0, {1, 1}}, {5, 0, {2}},    {4, 1, {0, 2, 0}}, {5, 2, {}},
                        {1, 0, {1}},    {3, 0, {1, 1}}, {2, 0, {1, 1}}, {0, 0, {}},        {0, 0, {1}}};
  const Tensor x = scores({5, 3});
  for (const Case& c : cases) {
    CAPTURE(c.labels.size());
    const Tensor labels = tensor(ArrayRef<int64_t>(c.labels), kInt64);
    const auto length = static_cast<int64_t>(c.labels.size());
    const double expected = by_definition(x, c.steps, c.labels, c.blank);
    const double got = ctc_loss(x, labels, {c.steps}, {length}, c.blank, Reduction::Sum).item<double>();
    CHECK((got == expected || got == doctest::Approx(expected).epsilon(1e-12)));
    const double cut = ctc_loss(x, labels, {c.steps}, {length}, c.blank, Reduction::Sum, true).item<double>();
    CHECK(cut == doctest::Approx(expected == kInf ? 0 : expected).epsilon(1e-12));
  }
}

TEST_CASE("ctc_loss: batches, layouts of targets, dtypes, reductions") {
  const Tensor x = scores({5, 3, 4});
  const Tensor padded = tensor({1, 2, 0, 3, 0, 0, 2, 2, 1}).view({3, 3});
  const Longs inputs{5, 4, 5}, lengths{2, 1, 3};
  const Tensor each = ctc_loss(x, padded, inputs, lengths, 0, Reduction::None);
  for (int64_t n = 0; n < 3; ++n) {
    const Tensor label = padded[n].narrow(0, 0, lengths[static_cast<size_t>(n)]);
    const Doubles numbers = values(label);
    const Longs one(numbers.begin(), numbers.end());
    CHECK(each[n].item<double>() ==
          doctest::Approx(by_definition(x.select(1, n), inputs[static_cast<size_t>(n)], one, 0)));
  }
  const auto same = [&](const Tensor& other) { return each.allclose(other.to(kFloat64), 1e-5, 1e-5); };
  CHECK(same(ctc_loss(x, tensor({1, 2, 3, 2, 2, 1}), inputs, lengths, 0, Reduction::None)));
  CHECK(same(ctc_loss(x.to(kFloat32), padded.to(kInt32), inputs, lengths, 0, Reduction::None)));
  CHECK(same(ctc_loss(x.transpose(0, 2).contiguous().transpose(0, 2), padded.t().contiguous().t(),
                      tensor({5, 4, 5}).to(kInt32), tensor({2, 1, 3}), 0, Reduction::None)));
  CHECK(ctc_loss(x, padded, inputs, lengths, 0, Reduction::Sum).allclose(each.sum()));
  CHECK(ctc_loss(x, padded, inputs, lengths).allclose((each / tensor({2., 1., 3.}, kFloat64)).mean()));
  CHECK(ctc_loss(x.select(1, 0), padded[0], tensor(5), tensor(3), 3, Reduction::None).dim() == 0);
  CHECK(ctc_loss(zeros({5, 0, 4}), zeros({0, 2}, kInt64), Longs{}, Longs{}, 0, Reduction::None).numel() == 0);
}

TEST_CASE("ctc_loss: the gradient, once") {
  const Tensor logits = leaf({5, 2, 4});
  const auto loss = [](const Tensors& in) {
    const Tensor x = log_softmax(in[0], 2);
    return Tensors{ctc_loss(x, tensor({1, 1, 2, 3, 0, 0}).view({2, 3}), {5, 3}, {3, 1}, 0, Reduction::None)};
  };
  check_gradient(loss, {logits});
  const auto of_one = [](const Tensors& in) {
    return Tensors{ctc_loss(log_softmax(in[0], 2), tensor({2, 1}).view({1, 2}), {4}, {2})};
  };
  check_gradient(of_one, {leaf({4, 1, 3})});
  const Tensor gradient = autograd::grad({loss({logits})[0].sum()}, {logits}, {}, true, true)[0];
  CHECK_THROWS_WITH_AS(gradient.sum().backward(), "ctc_loss: can be differentiated once only", NotImplementedError);
  // Past its length a sample has no gradient, and a target that does not fit has none where infinity counts as zero.
  const Tensor x = scores({4, 2, 3}).requires_grad_();
  ctc_loss(x, tensor({1, 1, 1, 2, 0, 0}).view({2, 3}), {4, 2}, {3, 1}, 0, Reduction::Sum, true).backward();
  CHECK(values(x.grad().select(1, 0)) == Doubles(12, 0.0));
  CHECK(values(x.grad().select(1, 1).narrow(0, 2, 2)) == Doubles(6, 0.0));
  CHECK(x.grad().ne(0).sum().item<int64_t>() == 6);
}

TEST_CASE("ctc_loss: meta tensors and wrong arguments") {
  const Tensor x = scores({5, 2, 4}), y = tensor({1, 2, 3, 1}).view({2, 2});
  const auto meta = [](IntArrayRef sizes, ScalarType dtype) { return empty(sizes, TensorOptions(kMeta).dtype(dtype)); };
  CHECK(ctc_loss(meta({5, 2, 4}, kFloat32), meta({2, 2}, kInt64), {5, 5}, {2, 2}, 0, Reduction::None).sizes() ==
        IntArrayRef({2}));
  CHECK_THROWS_AS(ctc_loss(x, y, meta({2}, kInt64), tensor({2, 2})), NotImplementedError);
  CHECK_THROWS_AS(ctc_loss(x[0][0], y, {5, 5}, {2, 2}), ValueError);
  CHECK_THROWS_AS(ctc_loss(x.to(kInt64), y, {5, 5}, {2, 2}), TypeError);
  CHECK_THROWS_AS(ctc_loss(x, y.to(kFloat32), {5, 5}, {2, 2}), TypeError);
  CHECK_THROWS_AS(ctc_loss(x, y, tensor({5., 5.}), tensor({2, 2})), TypeError);
  CHECK_THROWS_AS(ctc_loss(x, y, {5}, {2, 2}), ValueError);
  CHECK_THROWS_AS(ctc_loss(x, y, {5, 6}, {2, 2}), ValueError);
  CHECK_THROWS_AS(ctc_loss(x, y, {5, -1}, {2, 2}), ValueError);
  CHECK_THROWS_AS(ctc_loss(x, y, {5, 5}, {2, 3}), ValueError);
  CHECK_THROWS_AS(ctc_loss(x, y.flatten(), {5, 5}, {2, 1}), ValueError);
  CHECK_THROWS_AS(ctc_loss(x, y.view({4, 1}), {5, 5}, {1, 1}), ValueError);
  CHECK_THROWS_AS(ctc_loss(x, y, {5, 5}, {2, 2}, 4), ValueError);
  CHECK_THROWS_AS(ctc_loss(x, y, {5, 5}, {2, 2}, 0, 3), ValueError);
  CHECK_THROWS_AS(ctc_loss(x, y + 2, {5, 5}, {2, 2}), IndexError);
  CHECK_THROWS_AS(ctc_loss(x, y - 2, {5, 5}, {2, 2}), IndexError);
  CHECK_THROWS_WITH_AS(ctc_loss(x, y, {5, 7}, {2, 2}), "ctc_loss: input_lengths must be between 0 and 5, got 7",
                       ValueError);
}

}  // namespace
