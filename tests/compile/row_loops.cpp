// Loops that reduce rows: softmax, norms and cross entropy written out in primitives are one loop, with the bits of the
// operators one after another.
#include <doctest/doctest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <tuple>
#include <vector>

#include "rushlight.h"
#include "tests/compile/graph_calls.h"

using namespace rush;
using rush::testing::fused_calls;

namespace {

using TensorToTensor = std::function<Tensor(const Tensor&)>;

Tensor softmax_of(const Tensor& x) {
  const Tensor e = (x - x.amax({-1}, true)).exp();
  return e / e.sum({-1}, true);
}
Tensor layer_norm_of(const Tensor& x, const Tensor& w, const Tensor& b) {
  const Tensor centered = x - x.mean({-1}, true);
  return centered * ((centered * centered).mean({-1}, true) + 1e-3).rsqrt() * w + b;
}
Tensor rms_norm_of(const Tensor& x, const Tensor& w) { return x * ((x * x).mean({-1}, true) + 1e-3).rsqrt() * w; }
Tensor log_sum_exp_of(const Tensor& x) {
  const Tensor largest = x.amax({-1}, true);
  return (x - largest).exp().sum({-1}, true).log() + largest;
}

// The same bits, or NaN in both.
bool same(const Tensor& a, const Tensor& b) {
  if (a.sizes() != b.sizes() || a.scalar_type() != b.scalar_type() || a.strides() != b.strides()) return false;
  return (a == b).logical_or(a.isnan().logical_and(b.isnan())).all().item<bool>();
}

// What the function gives, and its gradient for one that depends on what it gives.
std::tuple<Tensor, Tensor> differentiate(const TensorToTensor& function, const Tensor& x) {
  const Tensor y = function(x);
  const Tensor gradient = autograd::grad({y}, {x}, {y.detach() * 0.5 + 1})[0];
  return {y.detach(), gradient};
}

// The function and its derivative in one graph; returns that.
Graph check_both_passes(const TensorToTensor& function, const Tensor& like) {
  auto compiled = compile([&](const Tensor& x) { return differentiate(function, x); });
  for (int i = 0; i < 3; ++i) {
    const Tensor x = (like * (i + 1)).detach().requires_grad_();
    const auto [y, gradient] = compiled(x);
    const auto [expected, expected_gradient] = differentiate(function, x);
    CHECK(same(y, expected));
    CHECK(same(gradient, expected_gradient));
  }
  CHECK(compiled.obstacle().empty());
  return compiled.graph();
}

void check_forward(const TensorToTensor& function, const Tensor& x, size_t calls = 1) {
  const NoGradGuard no_grad;
  auto compiled = compile(function);
  const Tensor expected = function(x);
  for (int i = 0; i < 2; ++i) CHECK(same(compiled(x), expected));
  CAPTURE(compiled.graph().print());
  CHECK(compiled.graph().calls.size() == calls);
}

}  // namespace

TEST_CASE("softmax and norms written out are one loop, with the backward pass") {
  for (const ScalarType dtype : {kFloat32, kFloat64, kBFloat16, kFloat16}) {
    CAPTURE(dtype);
    for (const int64_t columns : {1000, 1024}) {
      const Tensor x = randn({70, columns}).to(dtype), w = randn({columns}).to(dtype), b = randn({columns}).to(dtype);
      const TensorToTensor functions[] = {softmax_of, [&](const Tensor& t) { return layer_norm_of(t, w, b); },
                                          [&](const Tensor& t) { return rms_norm_of(t, w); }, log_sum_exp_of};
      for (const TensorToTensor& function : functions) {
        const Graph graph = check_both_passes(function, x);
        CAPTURE(graph.print());
        CHECK(graph.calls.size() == 1);
        CHECK(fused_calls(graph) == 1);
      }
    }
  }
}

TEST_CASE("a model's norms, and what stands before and after them, are loops with weights that learn") {
  const auto train = [](bool is_compiled) {
    manual_seed(2);
    const Tensor w = randn({96}).requires_grad_(), b = randn({96}).requires_grad_();
    const auto step = [&](const Tensor& x, const Tensor& y) {
      w.mutable_grad().reset(), b.mutable_grad().reset();
      const Tensor h = nn::functional::gelu(x.to(kBFloat16).to(kFloat32) * 2 + y);
      const Tensor loss = (softmax_of(layer_norm_of(h, w, b)) * y).relu().mean();
      loss.backward();
      return std::tuple(loss.detach(), w.grad(), b.grad());
    };
    auto compiled = compile(step);
    std::vector<Tensor> results;
    for (int i = 0; i < 4; ++i) {
      const Tensor x = randn({5, 7, 96}).requires_grad_(), y = randn({5, 7, 96});
      const auto [loss, gw, gb] = is_compiled ? compiled(x, y) : step(x, y);
      results.insert(results.end(), {loss.clone(), gw.clone(), gb.clone(), x.grad()});
    }
    CHECK(compiled.obstacle().empty());
    // The forward pass, the gradient of the mean, the backward pass, and copies of the gradients.
    if (is_compiled) CHECK(fused_calls(compiled.graph()) == 4);
    return results;
  };
  const std::vector<Tensor> a = train(true), b = train(false);
  for (size_t i = 0; i < a.size(); ++i) CHECK(a[i].equal(b[i]));
}

TEST_CASE("rows divided by numbers of their own have the bits of a division, in all ranges") {
  const auto by_largest = [](const Tensor& x) { return x / x.amax({-1}, true); };
  const auto reciprocal = [&](const Tensor& x) { return by_largest(x).reciprocal(); };  // tells 0 from -0
  for (const ScalarType dtype : {kFloat32, kFloat64, kBFloat16, kFloat16}) {
    for (const int64_t columns : {1023, 1024}) {
      CAPTURE(dtype);
      CAPTURE(columns);
      // Rows, and in them elements, from subnormal numbers to the largest.
      Tensor x = randn({64, columns}) * randint(-74, 60, {64, columns}).exp2() * randint(-75, 66, {64, 1}).exp2();
      x = where(rand({64, columns}).lt(0.01), zeros({}), x);
      x = where(rand({64, columns}).lt(0.01), full({}, -0.0), x);
      x = where(rand({64, columns}).lt(0.0002), full({}, std::numeric_limits<double>::infinity()), x);
      for (const TensorToTensor& function : {TensorToTensor(by_largest), TensorToTensor(reciprocal)})
        check_forward(function, x.to(dtype));
    }
  }
}

TEST_CASE("cross entropy written out, with a gather between its loops") {
  const Tensor target = randint(0, 257, {70}, TensorOptions(kInt64));
  const auto cross_entropy_of = [&](const Tensor& x) {
    return (log_sum_exp_of(x) - x.gather(1, target.unsqueeze(1))).mean();
  };
  const Graph graph = check_both_passes(cross_entropy_of, randn({70, 257}));
  CAPTURE(graph.print());
  CHECK(fused_calls(graph) >= 1);
  CHECK(graph.calls.size() < 16);
}

TEST_CASE("rows of any size") {
  for (const ScalarType dtype : {kFloat32, kBFloat16}) {
    for (const int64_t columns : {1, 2, 16, 31, 32, 33, 257, 1000, 4097, 40000}) {
      for (const int64_t rows : {0, 1, 3, 65, 70000}) {
        if (rows * columns > 2'500'000) continue;
        CAPTURE(columns);
        CAPTURE(rows);
        const Tensor w = randn({columns}).to(dtype);
        const auto norm = [&](const Tensor& x) { return rms_norm_of(x, w); };
        const Tensor x = randn({rows, columns}).to(dtype);
        check_both_passes(softmax_of, x);
        check_both_passes(norm, x);
      }
    }
  }
}

TEST_CASE("a reduction of all elements is in the loop that makes them, and numbers made of it with it") {
  const auto error = [](const Tensor& x) { return (x * x - x.sin()).pow(2).mean(); };
  const auto normalised = [](const Tensor& x) {
    const Tensor centered = x - x.mean();
    return centered / ((centered * centered).mean() + 1e-3).sqrt() + x.amax();
  };
  const auto squares = [](const Tensor& x) { return x.tanh().square().sum(); };  // y * y, and in its gradient 1 - y * y
  const auto terms = [](const Tensor& x) {                                       // of columns, whose elements lie apart
    Tensor sum = zeros({}, x.options());
    for (const Tensor& column : x.split(1, -1)) {
      for (const double factor : {2., 3., 2.}) sum = sum + (column * factor).pow(2).mean();
    }
    return sum;
  };
  for (const ScalarType dtype : {kFloat32, kFloat64, kBFloat16}) {
    for (const DimVector& sizes : {DimVector{2000}, DimVector{40, 50}, DimVector{31, 1, 33}, DimVector{2, 4095}}) {
      CAPTURE(dtype);
      CAPTURE(sizes);
      const Tensor x = randn(sizes).to(dtype);
      const bool is_short = x.numel() <= 4096;  // so that the CPU's loops have it, too
      for (const TensorToTensor& function :
           {TensorToTensor(error), TensorToTensor(normalised), TensorToTensor(squares)})
        check_both_passes(function, x);
      if (is_short) check_forward(error, x);
      if (is_short) check_forward(normalised, x);
    }
    check_both_passes(terms, randn({2000, 3}).to(dtype));
    check_forward(terms, randn({2000, 3}).to(dtype), 3);  // zeros, split, the loop
  }
}

TEST_CASE("a reduction of all elements is not in the loop of operands whose elements do not follow each other") {
  const Tensor x = randn({40, 50}), bias = randn({50});
  const auto of_sum = [&](const Tensor& t) { return ((t + bias) * 2).mean() * 3 + 1; };
  check_forward(of_sum, x, 2);                       // the mean and the numbers are a loop of their own
  check_forward(of_sum, x.t().contiguous().t(), 3);  // and not even that, where it reads columns
  const auto of_both = [](const Tensor& t) { return (t * t).mean() + (t * t).sum({-1}).mean(); };
  check_both_passes(of_both, x);
}

TEST_CASE("rows that lie anywhere in memory") {
  const Tensor wide = randn({40, 100}), three = randn({6, 5, 48});
  const Tensor inputs[] = {wide.slice(1, 3, 83),
                           wide.t(),
                           wide.slice(0, 1),
                           three.permute({1, 0, 2}),
                           randn({64}).expand({9, 64}),
                           randn({9, 1}).expand({9, 64}),
                           three.permute({0, 2, 1}),
                           randn({50})};
  for (const Tensor& x : inputs) {
    CAPTURE(x.sizes());
    check_both_passes(softmax_of, x);
    const NoGradGuard no_grad;
    auto compiled = compile(softmax_of);
    for (int i = 0; i < 2; ++i) CHECK(same(compiled(x), softmax_of(x)));
  }
  // Operands of other sizes and dtypes beside the rows.
  const Tensor mask = randn({48}) > 0, each = randn({6, 1, 1}), number = full({}, 0.5);
  check_forward(
      [&](const Tensor& x) {
        const Tensor kept = where(mask, x * each, x.to(kFloat64).to(kFloat32) * number);
        return kept * kept.sum({-1}, true) + kept.to(kBFloat16).amin({-1}, true).to(kFloat32);
      },
      three);
}

TEST_CASE("infinite numbers and NaN in rows") {
  Tensor x = randn({8, 67});
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const double numbers[] = {NAN, kInfinity, -kInfinity};
  for (int64_t row = 0; row < 3; ++row) x.select(0, row).select(0, 20 * row + 5).fill_(numbers[row]);
  x.select(0, 3).fill_(-kInfinity);
  x.select(0, 4).fill_(1e38);
  const Tensor w = ones({67});
  check_both_passes(softmax_of, x);
  check_both_passes([&](const Tensor& t) { return rms_norm_of(t, w); }, x);
  check_forward([](const Tensor& t) { return t * t.amin({-1}, true) + t.prod(-1, true); }, x);
}

TEST_CASE("sums, means, products and extremes of rows, of integers too") {
  const Tensor x = randn({20, 130}), n = randint(-5, 6, {20, 130}, TensorOptions(kInt32));
  check_forward([](const Tensor& t) { return t * 2 + t.mean({-1}, true); }, x);
  check_forward([](const Tensor& t) { return (t * 0.1 + 1).prod(-1, true).log(); }, x);
  check_forward([](const Tensor& t) { return t - t.amin({1}, true) * t.amax({1}, true); }, x);
  check_forward([](const Tensor& t) { return (t + 1).sum({-1}, true) * t; }, n);
  check_forward([](const Tensor& t) { return (t > 0).sum({-1}, true) + 2 * t.amax({-1}, true); }, n);
  check_forward([](const Tensor& t) { return t.to(kBFloat16).sum({-1}, true, kFloat32) * t; }, x);
}

TEST_CASE("what a row loop makes is there for others: rows' numbers, with a last dimension or without, and views") {
  const NoGradGuard no_grad;
  const auto several = [](const Tensor& x) {
    const Tensor y = x * 2, sum = y.sum(-1), repeated = sum.unsqueeze(-1).expand({6, 40});
    const Tensor largest = y.amax({-1}, true);
    return std::vector<Tensor>{y / repeated - largest, sum, repeated, largest, largest.squeeze(-1) + sum};
  };
  auto compiled = compile(several);
  const Tensor x = rand({6, 40});
  for (int i = 0; i < 3; ++i) {
    const std::vector<Tensor> actual = compiled(x), expected = several(x);
    for (size_t k = 0; k < expected.size(); ++k) CHECK(same(actual[k], expected[k]));
    CHECK(actual[1].is_alias_of(actual[2]));
  }
  // A square: without its last dimension, what has a number for each row is a row.
  const Tensor square = randn({40, 40});
  check_forward([](const Tensor& t) { return t * 2 - t.sum(-1) + t.sum({-1}, true); }, square, 2);
}

TEST_CASE("writes in place around reductions of rows stay in order") {
  const NoGradGuard no_grad;
  const auto write = [](const Tensor& x) {
    const Tensor before = x.sum({-1}, true);
    x.mul_(2).sub_(before);
    const Tensor y = x - x.amax({-1}, true);
    x.add_(y);
    return y * before + x.mean({-1}, true);
  };
  auto compiled = compile(write);
  for (int i = 0; i < 3; ++i) {
    const Tensor a = randn({9, 50}), b = a.clone();
    CHECK(same(compiled(a), write(b)));
    CHECK(same(a, b));
  }
}

TEST_CASE("sums over other dimensions go after the loop that they read from, unless it needs them") {
  const NoGradGuard no_grad;
  const auto with_columns = [](const Tensor& x) {
    const Tensor y = x * 2, column = y.sum(0), doubled = column * 2 + 1;
    const Tensor z = y.exp() - y.sum({-1}, true);
    const Tensor needs = (z + doubled).relu();
    y.add_(1);
    return std::vector<Tensor>{column, z, needs, y, y.sum(0) * needs.sum(0)};
  };
  auto compiled = compile(with_columns);
  for (int i = 0; i < 3; ++i) {
    const Tensor x = randn({30, 48});
    const std::vector<Tensor> actual = compiled(x), expected = with_columns(x);
    for (size_t k = 0; k < expected.size(); ++k) CHECK(same(actual[k], expected[k]));
  }
  CAPTURE(compiled.graph().print());
  CHECK(compiled.graph().calls[0].fused);
  CHECK(compiled.graph().calls[1].name == "aten::sum.dim_IntList");
}
