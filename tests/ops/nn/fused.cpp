// Fused chains of operators against the operators that they stand for.
#include "core/ops/nn/fused.h"

#include <doctest/doctest.h>

#include "rushlight.h"
#include "tests/ops/index/index_testing.h"

namespace {

using namespace rush;
using namespace rush::testing;

std::tuple<Tensor, Tensor> by_parts(const Tensor& a, const Tensor& b, IntArrayRef shape, const OptionalTensor& w,
                                    const OptionalTensor& bias) {
  const Tensor sum = a + b;
  return {layer_norm(sum, shape, w, bias), sum};
}

TEST_CASE("add_layer_norm is a sum and its layer norm") {
  manual_seed(0);
  const Tensor a = randn({3, 4, 6}, kFloat64), b = randn({3, 4, 6}, kFloat64), w = randn({6}, kFloat64),
               bias = randn({6}, kFloat64);
  const auto [out, sum] = add_layer_norm(a, b, {6}, w, bias);
  const auto [expected, expected_sum] = by_parts(a, b, {6}, w, bias);
  CHECK(allclose(out, expected, 1e-12, 1e-12));
  CHECK(allclose(sum, expected_sum, 0, 0));
  const auto [over_two, again] = add_layer_norm(a.transpose(0, 1), b.transpose(0, 1), {3, 6});
  CHECK(allclose(over_two, layer_norm((a + b).transpose(0, 1), {3, 6}), 1e-12, 1e-12));
  CHECK(std::get<0>(add_layer_norm(zeros({0, 6}), zeros({0, 6}), {6})).sizes() == IntArrayRef({0, 6}));
}

TEST_CASE("add_layer_norm rounds once: its sum keeps the wider dtype") {
  manual_seed(1);
  const Tensor a = randn({5, 16}), b = randn({5, 16}).to(kBFloat16), w = rand({16}) + 0.5, bias = randn({16});
  const auto [out, sum] = add_layer_norm(a, b, {16}, w, bias, 1e-5, kBFloat16);
  CHECK(out.scalar_type() == kBFloat16);
  CHECK(sum.scalar_type() == kFloat32);
  CHECK(allclose(sum, a + b, 0, 0));
  CHECK(allclose(out, layer_norm(a + b, {16}, w, bias).to(kBFloat16), 0, 0));
  CHECK(std::get<0>(add_layer_norm(a, b, {16})).scalar_type() == kFloat32);
  CHECK(std::get<0>(add_layer_norm(b, b, {16})).scalar_type() == kBFloat16);
  CHECK(std::get<1>(add_layer_norm(b, a, {16})).scalar_type() == kFloat32);
}

TEST_CASE("gradients of add_layer_norm arrive in the dtypes of the addends") {
  manual_seed(2);
  const Tensor x = randn({5, 16}), y = randn({5, 16}).to(kBFloat16), g = randn({5, 16}), h = randn({5, 16});
  std::vector<Tensor> grads[2];
  for (const int fused : {0, 1}) {
    const Tensor a = x.clone().requires_grad_(), b = y.clone().requires_grad_();
    const Tensor w = full({16}, 1.5).requires_grad_(), bias = zeros({16}).requires_grad_();
    Tensor out, sum;
    if (fused) {
      std::tie(out, sum) = add_layer_norm(a, b, {16}, w, bias, 1e-5, kBFloat16);
    } else {
      std::tie(out, sum) = by_parts(a, b, {16}, w, bias);
      out = out.to(kBFloat16);
    }
    ((out * g).sum() + (sum * h).sum()).backward();
    grads[fused] = {a.grad(), b.grad(), w.grad(), bias.grad()};
  }
  for (size_t i = 0; i < 4; ++i) {
    CAPTURE(i);
    CHECK(grads[1][i].scalar_type() == grads[0][i].scalar_type());
    const double most = i == 1 ? 2e-2 : 1e-4;
    CHECK(allclose(grads[1][i].to(kFloat32), grads[0][i].to(kFloat32), most, most));
  }
  // Only one of the results is used.
  const Tensor a = x.clone().requires_grad_();
  std::get<1>(add_layer_norm(a, y, {16})).sum().backward();
  CHECK(allclose(a.grad(), ones({5, 16}), 0, 0));
}

TEST_CASE("derivatives of add_layer_norm") {
  manual_seed(3);
  const auto both = [](const std::vector<Tensor>& t) -> std::vector<Tensor> {
    const auto [out, sum] = add_layer_norm(t[0], t[1], {t[2].size(0)}, t[2], t[3]);
    return {out, sum};
  };
  for (const int64_t columns : {3, 5}) {
    const std::vector<Tensor> inputs = {
        randn({2, columns}, kFloat64).requires_grad_(), randn({2, columns}, kFloat64).requires_grad_(),
        randn({columns}, kFloat64).requires_grad_(), randn({columns}, kFloat64).requires_grad_()};
    check_gradients(both, inputs);
  }
}

// Rows that a GPU's warps, blocks of threads and other kernels take.
TEST_CASE("add_layer_norm drops what dropout does, and gives the sums of the rows of what comes back") {
  for (const ScalarType low : {kFloat32, kBFloat16}) {
    for (const int64_t columns : {6, 21, 384, 768, 1000, 1024, 4096, 5000}) {
      CAPTURE(low);
      CAPTURE(columns);
      const Tensor a = randn({9, columns}), b = randn({9, columns}).to(low), w = rand({columns}) + 0.5;
      const Tensor g = randn({9, columns}).to(low), past = randn({9, columns});
      manual_seed(4);
      const auto [dropped, kept] = native_dropout(b, 0.4, true);
      manual_seed(4);
      const auto [out, sum, mean, rstd, mask] =
          ops::add_layer_norm(a, b, {columns}, w, std::nullopt, 1e-5, 0.4, std::optional(low));
      CHECK(mask.equal(kept));
      CHECK(sum.equal(a + dropped));
      CHECK(allclose(out, layer_norm(sum, {columns}, w).to(low), low == kFloat32 ? 1e-5 : 1e-2, 1e-5));
      const auto [whole, other, dw, db, none] =
          ops::add_layer_norm_backward(g, past, sum, {columns}, mean, rstd, w, {}, low, {}, 1, false);
      const auto [same, by_other, same_dw, same_db, sums] =
          ops::add_layer_norm_backward(g, past, sum, {columns}, mean, rstd, w, {}, low, mask, 1 / 0.6, true);
      CHECK(!none.defined());
      CHECK(allclose(same, whole, 1e-6, 1e-6));
      CHECK(allclose(same_dw, dw, 1e-5, 1e-5));
      CHECK(allclose(by_other, native_dropout_backward(other, mask, 1 / 0.6), 1e-6, 1e-6));
      CHECK(sums.scalar_type() == low);
      const double most = low == kFloat32 ? 1e-5 : 1e-2;
      CHECK(allclose(sums.to(kFloat32), by_other.to(kFloat32).sum(0), most, most));
    }
  }
}

TEST_CASE("gradients of add_layer_norm pass through its dropout") {
  const Tensor x = randn({5, 16}), y = randn({5, 16}), g = randn({5, 16});
  for (const double p : {0.0, 0.3, 1.0}) {
    CAPTURE(p);
    std::vector<Tensor> grads[2];
    for (const int fused : {0, 1}) {
      manual_seed(5);
      const Tensor a = x.clone().requires_grad_(), b = y.clone().requires_grad_();
      const Tensor out = fused ? std::get<0>(add_layer_norm(a, b, {16}, {}, {}, 1e-5, {}, p))
                               : layer_norm(a + dropout(b, p, true), {16});
      (out * g).sum().backward();
      grads[fused] = {a.grad(), b.grad()};
    }
    for (const size_t i : {0, 1}) CHECK(allclose(grads[1][i], grads[0][i], 1e-5, 1e-6));
  }
  const Tensor turned = randn({16, 5}).t();  // the mask of what lies otherwise in memory is dropout's, too
  manual_seed(7);
  const Tensor dropped = dropout(turned, 0.5, true);
  manual_seed(7);
  CHECK(std::get<1>(add_layer_norm(x, turned, {16}, {}, {}, 1e-5, {}, 0.5)).equal(x + dropped));
  manual_seed(6);  // the mask is a constant of the second derivative
  const Tensor kept = std::get<4>(ops::add_layer_norm(x, y, {16}, {}, {}, 1e-5, 0.5, {}));
  const auto out = [&](const std::vector<Tensor>& t) -> std::vector<Tensor> {
    manual_seed(6);
    return {std::get<0>(add_layer_norm(t[0], t[1], {16}, {}, {}, 1e-5, {}, 0.5))};
  };
  check_gradients(out, {x.to(kFloat64).requires_grad_(), y.to(kFloat64).requires_grad_()});
  CHECK(kept.sum().item<int64_t>() > 0);
}

TEST_CASE("add_layer_norm refuses what does not fit") {
  const Tensor x = zeros({2, 3});
  CHECK_THROWS_AS(add_layer_norm(x, zeros({3}), {3}), ValueError);
  CHECK_THROWS_AS(add_layer_norm(x, x, {2}), ValueError);
  CHECK_THROWS_AS(add_layer_norm(x, x, {3}, zeros({2})), ValueError);
  CHECK_THROWS_AS(add_layer_norm(x, x, {3}, std::nullopt, zeros({2})), ValueError);
  CHECK_THROWS_AS(add_layer_norm(x, zeros({2, 3}, kInt64), {3}), NotImplementedError);
  CHECK_THROWS_AS(add_layer_norm(x, x, {3}, std::nullopt, std::nullopt, 1e-5, kInt64), TypeError);
  CHECK_THROWS_WITH_AS(add_layer_norm(x, x, {3}, {}, {}, 1e-5, {}, 1.5), doctest::Contains("between 0 and 1"),
                       ValueError);
}

struct Perceptron {
  Tensor input, weight1, bias1, weight2, bias2;

  Perceptron(int64_t rows, int64_t in, int64_t hidden, int64_t out)
      : input(randn({2, rows, in}, kFloat64)),
        weight1(randn({hidden, in}, kFloat64)),
        bias1(randn({hidden}, kFloat64)),
        weight2(randn({out, hidden}, kFloat64)),
        bias2(randn({out}, kFloat64)) {}
  std::vector<Tensor> all() const { return {input, weight1, bias1, weight2, bias2}; }
};

Tensor perceptron_by_parts(const std::vector<Tensor>& t) {
  return linear(gelu(linear(t[0], t[1], t[2]), "tanh"), t[3], t[4]);
}
Tensor perceptron(const std::vector<Tensor>& t) { return gelu_perceptron(t[0], t[1], t[2], t[3], t[4]); }

TEST_CASE("gelu_perceptron is two affine maps with GELU between them") {
  manual_seed(4);
  const Perceptron p(3, 5, 8, 4);
  CHECK(allclose(perceptron(p.all()), perceptron_by_parts(p.all()), 1e-12, 1e-12));
  const Tensor turned = p.input.transpose(0, 1);
  CHECK(allclose(gelu_perceptron(turned, p.weight1, p.bias1, p.weight2, p.bias2), perceptron(p.all()).transpose(0, 1),
                 1e-12, 1e-12));
  const Tensor none = gelu_perceptron(p.input.narrow(0, 0, 0), p.weight1, p.bias1, p.weight2, p.bias2);
  CHECK(none.sizes() == IntArrayRef({0, 3, 4}));
}

TEST_CASE("derivatives of gelu_perceptron") {
  manual_seed(5);
  for (const int64_t rows : {1, 2}) {
    std::vector<Tensor> inputs = Perceptron(rows, 2, 3, 2).all();
    for (Tensor& input : inputs) input.requires_grad_();
    const auto fn = [](const std::vector<Tensor>& t) -> std::vector<Tensor> { return {perceptron(t)}; };
    check_gradients(fn, inputs);
  }
}

TEST_CASE("gelu_perceptron refuses what does not fit") {
  const Perceptron p(3, 5, 8, 4);
  CHECK_THROWS_AS(gelu_perceptron(p.input, p.weight2, p.bias1, p.weight2, p.bias2), ValueError);
  CHECK_THROWS_AS(gelu_perceptron(p.input, p.weight1, p.bias2, p.weight2, p.bias2), ValueError);
  CHECK_THROWS_AS(gelu_perceptron(p.input, p.weight1[0], p.bias1, p.weight2, p.bias2), ValueError);
  CHECK_THROWS_AS(gelu_perceptron(p.input.to(kFloat32), p.weight1, p.bias1, p.weight2, p.bias2), TypeError);
  CHECK_THROWS_AS(ops::linear_parameter_gradients(zeros({2, 3}), zeros({3, 2})), ValueError);
  CHECK_THROWS_AS(ops::linear_parameter_gradients(zeros({2, 3}), zeros({2, 2}, kFloat64)), TypeError);
}

}  // namespace

TEST_CASE("linear_gelu and its gradient are those of the operators one by one") {
  const Tensor x = randn({2, 3, 5}), weight = randn({7, 5}), bias = randn({7}), grad = randn({2, 3, 7});
  const auto [output, pre] = linear_gelu(x, weight, bias);
  CHECK(pre.allclose(nn::functional::linear(x, weight, bias), 1e-4, 1e-5));
  CHECK(output.allclose(gelu(pre, "tanh"), 1e-4, 1e-5));
  const Tensor in_place = grad.clone(), sums = gelu_bias_backward_(in_place, pre);
  const Tensor expected = ops::gelu_backward(grad, pre, "tanh");
  CHECK(in_place.allclose(expected, 1e-4, 1e-5));
  CHECK(sums.allclose(expected.sum({0, 1}), 1e-4, 1e-4));
  CHECK_THROWS_AS(linear_gelu(x, weight.t(), bias), ValueError);
  CHECK_THROWS_AS(linear_gelu(x, weight, randn({5})), ValueError);
  CHECK_THROWS_AS(linear_gelu(x, weight.to(kFloat64), bias), TypeError);
  CHECK_THROWS_AS(linear_gelu(x.to(kInt64), weight, bias), NotImplementedError);
  CHECK_THROWS_AS(gelu_bias_backward_(grad, pre.view({6, 7})), ValueError);
  CHECK_THROWS_AS(gelu_bias_backward_(grad.transpose(0, 1), pre.transpose(0, 1)), ValueError);
  CHECK_THROWS_AS(gelu_bias_backward_(grad, pre.to(kFloat64)), TypeError);
}
