#include "core/ops/nn/norm.h"

#include <doctest/doctest.h>

#include <cmath>
#include <numeric>

#include "rushlight.h"
#include "tests/ops/nn/nn_testing.h"

namespace {

using namespace rush;
using namespace rush::testing;

// (x - mean) / sqrt(var + eps) of runs of `size` elements, or x / sqrt(mean square + eps).
Doubles normalized_runs(const Doubles& x, size_t size, double eps, bool centred = true) {
  Doubles result;
  for (size_t start = 0; start + size <= x.size() && size; start += size) {
    double mean = 0, square = 0;
    for (size_t i = start; i < start + size; ++i) mean += centred ? x[i] / static_cast<double>(size) : 0;
    for (size_t i = start; i < start + size; ++i) square += (x[i] - mean) * (x[i] - mean) / static_cast<double>(size);
    for (size_t i = start; i < start + size; ++i) result.push_back((x[i] - mean) / std::sqrt(square + eps));
  }
  return result;
}

TEST_CASE("layer_norm: rows of mean zero and variance one, scaled and shifted") {
  for (const int64_t columns : {1, 3, 7, 64, 130, 5000}) {
    const Tensor x = leaf({4, columns}).detach() * 3 + 1;
    const Tensor w = leaf({columns}, 1).detach(), b = leaf({columns}, 2).detach();
    Doubles expected = normalized_runs(values(x), static_cast<size_t>(columns), 1e-5);
    check_close(layer_norm(x, columns), expected);
    check_close(layer_norm(x.to(kFloat32), columns), expected, 2e-5);
    const Doubles ws = values(w), bs = values(b);
    Doubles biased = expected;
    for (size_t i = 0; i < expected.size(); ++i) {
      const size_t c = i % static_cast<size_t>(columns);
      biased[i] += bs[c];
      expected[i] = expected[i] * ws[c] + bs[c];
    }
    check_close(layer_norm(x, columns, w, b), expected);
    check_close(layer_norm(x, columns, {}, b), biased);
    check_close(layer_norm(x.t().contiguous().t(), columns, w, b), expected);
    check_close(layer_norm(x.to(kBFloat16), columns, w.to(kBFloat16), b.to(kBFloat16)), expected, 0.05);
    check_close(layer_norm(x.to(kBFloat16), columns, w.to(kFloat32), b.to(kFloat32)), expected, 0.05);
  }
  const auto [out, mean, rstd] = native_layer_norm(counting({2, 3, 4}), {3, 4}, {}, {}, 0);
  CHECK(mean.sizes() == IntArrayRef({2, 1, 1}));
  CHECK(values(mean) == Doubles{5.5, 17.5});
  check_close(rstd, {1 / std::sqrt(143.0 / 12), 1 / std::sqrt(143.0 / 12)});
  CHECK(std::get<1>(native_layer_norm(zeros({2, 3}, kBFloat16), 3, {}, {}, 1)).scalar_type() == kFloat32);
  CHECK(layer_norm(zeros({0, 3}), 3).sizes() == IntArrayRef({0, 3}));
  CHECK(layer_norm(empty({2, 3}, kMeta), 3).sizes() == IntArrayRef({2, 3}));
  const auto [nothing, mean_of_nothing, rstd_of_nothing] = native_layer_norm(zeros({2, 0}), 0, {}, {}, -1);
  CHECK(values(mean_of_nothing) == Doubles{0, 0});
  CHECK(rstd_of_nothing.isnan().all().item<bool>());
}

TEST_CASE("layer_norm: a mean far from zero costs no digits of the variance") {
  const Tensor x = counting({1, 8192}, kFloat32) / 8192 + 1000;
  const auto [out, mean, rstd] = native_layer_norm(x, 8192, {}, {}, 0);
  CHECK(mean.item<double>() == doctest::Approx(1000.5).epsilon(1e-6));
  CHECK(rstd.item<double>() == doctest::Approx(std::sqrt(12.0)).epsilon(1e-4));
}

TEST_CASE("rms_norm: divides by the root of the mean square") {
  const Tensor x = leaf({4, 37}).detach() * 2;
  check_close(rms_norm(x, 37, {}, 0.1), normalized_runs(values(x), 37, 0.1, false));
  const Tensor w = full({37}, 3.0, kFloat64);
  Doubles expected = normalized_runs(values(x), 37, std::numeric_limits<double>::epsilon(), false);
  for (double& v : expected) v *= 3;
  check_close(rms_norm(x, 37, w), expected);
  check_close(rms_norm(x.to(kFloat32), 37, w.to(kFloat32)), expected, 1e-5);
  const Tensor real_only = rms_norm(x.to(kComplex128), 37, w.to(kComplex128));
  check_close(real(real_only), expected);
}

TEST_CASE("group_norm: groups of channels of each sample") {
  const Tensor x = leaf({3, 6, 4}).detach() + 2;
  Doubles expected = normalized_runs(values(x), 8, 1e-5);
  check_close(group_norm(x, 3), expected);
  check_close(group_norm(x.transpose(0, 2).contiguous().transpose(0, 2), 3), expected);
  const Tensor w = leaf({6}, 1).detach(), b = leaf({6}, 2).detach();
  for (size_t i = 0; i < expected.size(); ++i) {
    const size_t c = i / 4 % 6;
    expected[i] = expected[i] * values(w)[c] + values(b)[c];
  }
  check_close(group_norm(x, 3, w, b), expected);
  check_close(group_norm(x.to(kFloat32), 3, w.to(kFloat32), b.to(kFloat32)), expected, 1e-5);
  CHECK(group_norm(zeros({0, 4}), 2).sizes() == IntArrayRef({0, 4}));
  // Channels of no elements, any number of them.
  const auto nothing = ops::native_group_norm(zeros({8, 0, 4}), {}, {}, 2, int64_t{1} << 40, 0, 1, 1e-5);
  CHECK(std::get<1>(nothing).sizes() == IntArrayRef({2, 1}));
  const Tensor scale = ones({4}).requires_grad_(), shift = zeros({4}).requires_grad_();
  group_norm(zeros({2, 4, 0}), 2, scale, shift).sum().backward();
  CHECK(scale.grad().equal(zeros({4})));
  CHECK(shift.grad().equal(zeros({4})));
  CHECK(group_norm(empty({2, 4, 5}, kMeta), 2).sizes() == IntArrayRef({2, 4, 5}));
}

TEST_CASE("layer, RMS and group norm: first and second derivatives") {
  const Tensor x = leaf({3, 4}), strided = leaf({4, 3}).detach().t().requires_grad_();
  const Tensor w = leaf({4}, 1), b = leaf({4}, 2);
  const auto layer = [](const Tensors& in) { return Tensors{layer_norm(in[0], 4, in[1], in[2])}; };
  check_gradients(layer, {x, w, b});
  check_gradients(layer, {strided, w, b});
  check_gradients([](const Tensors& in) { return Tensors{layer_norm(in[0], {3, 4})}; }, {x});
  check_gradients([&](const Tensors& in) { return Tensors{layer_norm(in[0], 4, w.detach(), in[1])}; }, {x, b});
  check_gradients([](const Tensors& in) { return Tensors{rms_norm(in[0], 4, in[1])}; }, {x, w});
  check_gradients([](const Tensors& in) { return Tensors{rms_norm(in[0], 4, {}, 0.1)}; }, {strided});
  const Tensor images = leaf({2, 4, 3});
  check_gradients([](const Tensors& in) { return Tensors{group_norm(in[0], 2, in[1], in[2])}; }, {images, w, b});
  check_gradients([](const Tensors& in) { return Tensors{group_norm(in[0], 4)}; }, {images});
  check_gradients([](const Tensors& in) { return Tensors{group_norm(in[0], 1, in[1])}; }, {leaf({2, 4}), w});
}

// The fused backward passes against the formulas that stand in for them when the pass is recorded.
void check_fused_backward(const autograd::TensorFunction& fn, const Tensors& inputs, double tolerance) {
  const Tensor out = fn(inputs)[0];
  const Tensor grad = leaf(out.sizes(), 0.3).detach().to(out.scalar_type());
  const Tensors fused = autograd::grad({out}, inputs, {grad}, true);
  const Tensors formula = autograd::grad({out}, inputs, {grad}, true, true);
  for (size_t i = 0; i < inputs.size(); ++i) {
    CHECK(fused[i].sizes() == inputs[i].sizes());
    CHECK(fused[i].scalar_type() == inputs[i].scalar_type());
    check_close(fused[i], values(formula[i].detach()), tolerance);
  }
}

TEST_CASE("layer and group norm: the fused backward pass, in every dtype and beyond one block") {
  for (const auto& [dtype, tolerance] :
       {std::pair(kFloat64, 1e-9), std::pair(kFloat32, 2e-4), std::pair(kBFloat16, 0.1)}) {
    const auto cast = [dtype = dtype](const Tensor& t) { return t.detach().to(dtype).requires_grad_(); };
    for (const int64_t columns : {5, 70, 4500}) {
      const Tensors inputs{cast(leaf({300, columns})), cast(leaf({columns}, 1)), cast(leaf({columns}, 2))};
      if (dtype == kBFloat16 || columns > 1000) {
        check_fused_backward([&](const Tensors& in) { return Tensors{layer_norm(in[0], columns, in[1], in[2])}; },
                             {cast(leaf({3, columns})), inputs[1], inputs[2]}, tolerance);
      } else {
        check_fused_backward([&](const Tensors& in) { return Tensors{layer_norm(in[0], columns, in[1], in[2])}; },
                             inputs, tolerance);
      }
    }
    check_fused_backward([](const Tensors& in) { return Tensors{group_norm(in[0], 2, in[1], in[2])}; },
                         {cast(leaf({2, 4, 50})), cast(leaf({4}, 1)), cast(leaf({4}, 2))}, tolerance);
    check_fused_backward([](const Tensors& in) { return Tensors{rms_norm(in[0], 60, in[1])}; },
                         {cast(leaf({3, 60})), cast(leaf({60}, 1))}, tolerance);
  }
}

TEST_CASE("cosine_similarity and pairwise_distance") {
  const Tensor a = tensor({1., 2., 3., -1.}).view({2, 2}).to(kFloat64),
               b = tensor({4., 0., 3., 1.}).view({2, 2}).to(kFloat64);
  check_close(cosine_similarity(a, b), {1 / std::sqrt(5.0), 8 / 10.0});
  check_close(cosine_similarity(a, b, 0), {13 / std::sqrt(250.0), -1 / std::sqrt(5.0)});
  check_close(cosine_similarity(zeros({2}, kFloat64), ones({2}, kFloat64), 0), {0});
  // The dimension is the broadcast shape's, along which one of them may be repeated: (1, 2) and (2, 2) times (1, 1).
  check_close(
      cosine_similarity(tensor({1., 2.}, kFloat64).view({1, 2, 1}), tensor({3., 4.}, kFloat64).view({2, 1, 1}), -2),
      {3 / std::sqrt(10.0), 3 / std::sqrt(10.0)});
  CHECK_THROWS_AS(cosine_similarity(a.to(kInt64), b.to(kInt64)), TypeError);
  check_close(pairwise_distance(a, b, 2, 0), {std::sqrt(13.0), 2});
  check_close(pairwise_distance(a, b, 1, 0, true), {5, 2});
  CHECK(pairwise_distance(a, b, 1, 0, true).sizes() == IntArrayRef({2, 1}));
  CHECK(pairwise_distance(a.to(kInt64), b.to(kInt64)).scalar_type() == kFloat32);
  const Tensor x = leaf({3, 4}), y = leaf({3, 4}, 1);
  check_gradients([](const Tensors& in) { return Tensors{cosine_similarity(in[0], in[1])}; }, {x, y});
  check_gradients([](const Tensors& in) { return Tensors{cosine_similarity(in[0], in[1], -1)}; }, {x, leaf({1, 4}, 1)});
  check_gradients([](const Tensors& in) { return Tensors{cosine_similarity(in[0], in[1], 0)}; }, {x, leaf({1, 4}, 1)});
  for (const double p : {1.0, 2.0, 3.0}) {
    check_gradients([p](const Tensors& in) { return Tensors{pairwise_distance(in[0], in[1], p)}; }, {x, y});
  }
}

TEST_CASE("weight norm: direction and length apart") {
  const Tensor v = leaf({3, 2, 2}), g = leaf({3, 1, 1}, 1), columns = leaf({1, 1, 2}, 1);
  const Tensor w = _weight_norm(v, g);
  check_close(norm_except_dim(w), values(g.abs()));
  check_close(norm_except_dim(_weight_norm(v, columns, 2), 2, 2), values(columns.abs()));
  CHECK(norm_except_dim(v, 2, -1).sizes().empty());
  CHECK(norm_except_dim(v, 1, 1).sizes() == IntArrayRef({1, 2, 1}));
  check_gradients([](const Tensors& in) { return Tensors{_weight_norm(in[0], in[1])}; }, {v, g});
}

TEST_CASE("norms: wrong arguments") {
  const Tensor x = zeros({2, 6});
  CHECK_THROWS_AS(layer_norm(x, 5), ValueError);
  CHECK_THROWS_AS(layer_norm(x, IntArrayRef()), ValueError);
  CHECK_THROWS_AS(layer_norm(x, {3, 2, 6}), ValueError);
  CHECK_THROWS_AS(layer_norm(x, 6, zeros({5})), ValueError);
  CHECK_THROWS_AS(layer_norm(x, 6, zeros({6}, kInt64)), TypeError);
  CHECK_THROWS_AS(layer_norm(x.to(kInt64), 6), NotImplementedError);
  CHECK_THROWS_AS(layer_norm(x, 6, zeros({6}, kMeta)), ValueError);
  CHECK_THROWS_AS(group_norm(x, 4), ValueError);
  CHECK_THROWS_AS(group_norm(x, 0), ValueError);
  CHECK_THROWS_AS(group_norm(zeros({3}), 1), ValueError);
  CHECK_THROWS_AS(group_norm(x, 2, zeros({2})), ValueError);
  CHECK_THROWS_AS(rms_norm(x, 7), ValueError);
  const auto [out, mean, rstd] = native_layer_norm(x, 6, {}, {}, 1e-5);
  CHECK_THROWS_AS(ops::native_layer_norm_backward(zeros({2, 5}), x, 6, mean, rstd, {}, {}, {true, true, true}),
                  ValueError);
  CHECK_THROWS_AS(ops::native_layer_norm_backward(x, x, 6, zeros({3}), rstd, {}, {}, {true, true, true}), ValueError);
  // Those of layer_norm are constants, as in PyTorch, where these have gradients.
  const Tensor leaf_x = leaf({2, 6});
  CHECK_FALSE(std::get<1>(native_layer_norm(leaf_x, 6, {}, {}, 1e-5)).requires_grad());
  CHECK_THROWS_AS(std::get<1>(ops::native_group_norm(leaf_x, {}, {}, 2, 6, 1, 2, 1e-5)).sum().backward(),
                  NotImplementedError);
  CHECK_THROWS_AS(std::get<1>(ops::_fused_rms_norm(leaf_x, 6, {}, 1e-5)).sum().backward(), NotImplementedError);
  CHECK_THROWS_WITH_AS(
      layer_norm(x, 5),
      "layer_norm: Given normalized_shape=[5], expected input with shape [*, 5], but got input of size[2, 6]",
      ValueError);
}

}  // namespace
