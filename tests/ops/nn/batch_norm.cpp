#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "core/ops/nn/norm.h"
#include "rushlight.h"
#include "tests/ops/nn/nn_testing.h"

namespace {

using namespace rush;
using namespace rush::testing;

struct Statistics {
  Doubles mean, var;
};

// Of each channel of (N, C, positions), biased.
Statistics channel_statistics(const Tensor& x) {
  const Doubles v = values(x);
  const int64_t channels = x.size(1), inner = x.numel() / (x.size(0) * channels);
  Statistics s{Doubles(channels, 0.0), Doubles(channels, 0.0)};
  const double count = static_cast<double>(x.numel() / channels);
  for (size_t i = 0; i < v.size(); ++i) s.mean[i / inner % channels] += v[i] / count;
  for (size_t i = 0; i < v.size(); ++i) {
    const size_t c = i / inner % channels;
    s.var[c] += (v[i] - s.mean[c]) * (v[i] - s.mean[c]) / count;
  }
  return s;
}

Doubles expected_output(const Tensor& x, const Statistics& s, const Doubles& w, const Doubles& b, double eps) {
  Doubles v = values(x);
  const size_t channels = s.mean.size(), inner = v.size() / (static_cast<size_t>(x.size(0)) * channels);
  for (size_t i = 0; i < v.size(); ++i) {
    const size_t c = i / inner % channels;
    v[i] = (v[i] - s.mean[c]) / std::sqrt(s.var[c] + eps) * w[c] + b[c];
  }
  return v;
}

TEST_CASE("batch_norm: training normalises by the batch and moves the running statistics") {
  const std::vector<Longs> shapes{{7, 3}, {4, 3, 5}, {3, 3, 4, 6}, {2, 3, 2, 3, 4}, {2, 3, 70, 70}, {300, 3}};
  for (const Longs& shape : shapes) {
    const Tensor x = leaf(shape).detach() * 2 + 1;
    const Tensor w = leaf({3}, 1).detach(), b = leaf({3}, 2).detach();
    const Statistics s = channel_statistics(x);
    const Doubles expected = expected_output(x, s, values(w), values(b), 1e-3);
    std::vector<Tensor> layouts{x};
    if (x.dim() == 4) layouts.push_back(x.contiguous(MemoryFormat::ChannelsLast));
    if (x.dim() == 5) layouts.push_back(x.contiguous(MemoryFormat::ChannelsLast3d));
    layouts.push_back(x.transpose(0, -1).contiguous().transpose(0, -1));
    for (const Tensor& input : layouts) {
      const Tensor mean = full({3}, 10.0, kFloat64), var = full({3}, 20.0, kFloat64);
      const auto [out, save_mean, save_invstd] = native_batch_norm(input, w, b, mean, var, true, 0.25, 1e-3);
      check_close(out, expected);
      check_close(save_mean, s.mean);
      CHECK(out.suggest_memory_format() == input.suggest_memory_format());
      const double n = static_cast<double>(x.numel() / 3);
      for (int c = 0; c < 3; ++c) {
        CHECK(values(save_invstd)[c] == doctest::Approx(1 / std::sqrt(s.var[c] + 1e-3)));
        CHECK(values(mean)[c] == doctest::Approx(7.5 + 0.25 * s.mean[c]));
        CHECK(values(var)[c] == doctest::Approx(15 + 0.25 * s.var[c] * n / (n - 1)));
      }
      check_close(batch_norm(input.to(kFloat32), w.to(kFloat32), b.to(kFloat32), {}, {}, true, 0.1, 1e-3), expected,
                  2e-5);
      check_close(batch_norm(input.to(kBFloat16), w.to(kFloat32), b.to(kFloat32), {}, {}, true, 0.1, 1e-3), expected,
                  0.05);
    }
  }
}

TEST_CASE("batch_norm: evaluation uses the running statistics and leaves them alone") {
  const Tensor x = leaf({2, 3, 4, 5}).detach(), mean = leaf({3}, 1).detach(), var = leaf({3}, 2).detach() + 2;
  const Doubles expected = expected_output(x, {values(mean), values(var)}, Doubles{1, 1, 1}, Doubles{0, 0, 0}, 1e-5);
  const auto [out, save_mean, save_invstd] = native_batch_norm(x, {}, {}, mean, var, false, 0.1, 1e-5);
  check_close(out, expected);
  CHECK(save_mean.numel() == 0);
  check_close(batch_norm(x.contiguous(MemoryFormat::ChannelsLast), {}, {}, mean, var, false, 0.1, 1e-5), expected);
  CHECK(values(mean) == values(leaf({3}, 1)));
}

TEST_CASE("batch_norm: running statistics in use by a recorded evaluation are seen to change") {
  const Tensor x = leaf({2, 3}), mean = zeros({3}, kFloat64), var = ones({3}, kFloat64);
  const Tensor out = batch_norm(x, {}, {}, mean, var, false, 0.1, 1e-5);
  batch_norm(x, {}, {}, mean, var, true, 0.1, 1e-5);
  CHECK_THROWS_AS(out.sum().backward(), Error);
}

TEST_CASE("batch_norm: inputs without elements") {
  CHECK(batch_norm(zeros({0}), {}, {}, zeros({0}), zeros({0}), true, 0.1, 1e-5).sizes() == IntArrayRef(0));
  const Tensor w = ones({3}).requires_grad_();
  const Tensor out = batch_norm(zeros({0, 3, 4}), w, {}, {}, {}, true, 0.1, 1e-5);
  CHECK(out.sizes() == IntArrayRef({0, 3, 4}));
  out.sum().backward();
  CHECK(values(w.grad()) == Doubles{0, 0, 0});
  CHECK(batch_norm(empty({2, 3, 4}, kMeta), {}, {}, {}, {}, true, 0.1, 1e-5).sizes() == IntArrayRef({2, 3, 4}));
}

TEST_CASE("instance_norm: every sample by itself") {
  const Tensor x = leaf({3, 2, 5}).detach(), w = leaf({2}, 1).detach(), b = leaf({2}, 2).detach();
  const Tensor mean = zeros({2}, kFloat64), var = ones({2}, kFloat64);
  const Tensor out = instance_norm(x, w, b, mean, var, true, 0.5, 1e-3);
  Doubles means(2, 0.0);
  for (int64_t n = 0; n < 3; ++n) {
    const Tensor sample = x.select(0, n).unsqueeze(0);
    const Statistics s = channel_statistics(sample);
    check_close(out.select(0, n), expected_output(sample, s, values(w), values(b), 1e-3));
    for (int c = 0; c < 2; ++c) means[c] += 0.5 * s.mean[c] / 3;
  }
  check_close(mean, means);
  check_close(instance_norm(x, {}, {}, zeros({2}, kFloat64), full({2}, 4.0, kFloat64), false, 0.5, 0), values(x / 2));
  // A single channel, whose statistics could be seen by all samples without a copy.
  const Tensor one = x.narrow(1, 0, 1), its_mean = zeros({1}, kFloat64), its_var = ones({1}, kFloat64);
  instance_norm(one, {}, {}, its_mean, its_var, true, 0.5, 1e-3);
  check_close(its_mean, {means[0]});
}

TEST_CASE("batch_norm and instance_norm: first and second derivatives") {
  const Tensor w = leaf({3}, 1), b = leaf({3}, 2);
  const auto train = [](const Tensors& in) {
    return Tensors{batch_norm(in[0], in[1], in[2], {}, {}, true, 0.1, 1e-3)};
  };
  const auto evaluate = [](const Tensors& in) {
    const Tensor mean = full({3}, 0.2, kFloat64), var = full({3}, 1.5, kFloat64);
    return Tensors{batch_norm(in[0], in[1], in[2], mean, var, false, 0.1, 1e-3)};
  };
  const Tensor image = leaf({2, 3, 2, 2});
  const Tensor last = image.detach().clone().contiguous(MemoryFormat::ChannelsLast).requires_grad_();
  for (const Tensor& x : {leaf({4, 3}), leaf({2, 3, 3}), image, last}) {
    check_gradients(train, {x, w, b});
    check_gradients(evaluate, {x, w, b});
  }
  check_gradients([](const Tensors& in) { return Tensors{batch_norm(in[0], {}, {}, {}, {}, true, 0.1, 1e-3)}; },
                  {image});
  check_gradients(
      [](const Tensors& in) { return Tensors{instance_norm(in[0], in[1], in[2], {}, {}, true, 0.1, 1e-3)}; },
      {leaf({2, 3, 3}), w, b});
}

TEST_CASE("batch_norm: the fused backward pass in lower precision and both layouts") {
  const Tensor x = leaf({2, 3, 70, 70}), w = leaf({3}, 1), b = leaf({3}, 2);
  const Tensor grad = leaf(x.sizes(), 0.4).detach();
  const auto gradients = [&](ScalarType dtype, MemoryFormat format) {
    const Tensors inputs{x.detach().to(dtype).contiguous(format).requires_grad_(),
                         w.detach().to(dtype).requires_grad_(), b.detach().to(dtype).requires_grad_()};
    const Tensor out = batch_norm(inputs[0], inputs[1], inputs[2], {}, {}, true, 0.1, 1e-3);
    return autograd::grad({out}, inputs, {grad.to(dtype)});
  };
  const Tensors exact = gradients(kFloat64, MemoryFormat::Contiguous);
  for (const MemoryFormat format : {MemoryFormat::Contiguous, MemoryFormat::ChannelsLast}) {
    const Tensors wide = gradients(kFloat64, format), single = gradients(kFloat32, format);
    for (int i = 0; i < 3; ++i) {
      check_close(wide[i], values(exact[i]), 1e-9);
      check_close(single[i], values(exact[i]), 1e-3);
    }
  }
}

// What batch_norm_relu stands for, by the operators one by one.
Tensor norm_add_relu(const Tensor& x, const Tensor& residual, const Tensor& w, const Tensor& b, const Tensor& mean,
                     const Tensor& var, bool training) {
  const Tensor out = batch_norm(x, w, b, mean, var, training, 0.25, 1e-3);
  return relu(residual.defined() ? out + residual : out);
}

TEST_CASE("batch_norm_relu: relu(batch_norm + residual), training and evaluated, in every layout") {
  for (const Longs& shape : std::vector<Longs>{{7, 3}, {4, 3, 5}, {3, 3, 4, 6}, {2, 3, 2, 3, 4}}) {
    const Tensor x = leaf(shape).detach(), w = leaf({3}, 1).detach(), b = leaf({3}, 2).detach();
    std::vector<Tensor> layouts{x, x.transpose(0, -1).contiguous().transpose(0, -1)};
    if (x.dim() == 4) layouts.push_back(x.contiguous(MemoryFormat::ChannelsLast));
    for (const Tensor& input : layouts) {
      for (const Tensor& residual : {Tensor(), leaf(shape, 3).detach()}) {
        for (const bool training : {true, false}) {
          Tensor means[2], vars[2], outs[2];
          for (int i = 0; i < 2; ++i) {
            means[i] = full({3}, 0.1, kFloat64);
            vars[i] = full({3}, 2.0, kFloat64);
          }
          const OptionalTensor other = residual.defined() ? OptionalTensor(residual) : std::nullopt;
          outs[0] = batch_norm_relu(input, other, w, b, means[0], vars[0], training, 0.25, 1e-3);
          outs[1] = norm_add_relu(input, residual, w, b, means[1], vars[1], training);
          check_close(outs[0], values(outs[1]));
          check_close(means[0], values(means[1]));
          check_close(vars[0], values(vars[1]));
          CHECK(outs[0].suggest_memory_format() == input.suggest_memory_format());
          const Doubles numbers = values(outs[0]);
          CHECK(std::count(numbers.begin(), numbers.end(), 0.0) > 0);
        }
      }
    }
  }
}

TEST_CASE("batch_norm_relu: first and second derivatives") {
  const Tensor w = leaf({3}, 1), b = leaf({3}, 2);
  const Tensor image = leaf({2, 3, 2, 2});
  const Tensor last = image.detach().clone().contiguous(MemoryFormat::ChannelsLast).requires_grad_();
  for (const Tensor& x : {leaf({4, 3}), leaf({2, 3, 3}), image, last}) {
    const Tensor residual = leaf(x.sizes(), 5);
    for (const bool training : {true, false}) {
      const auto with = [training](const Tensors& in) {
        const Tensor mean = full({3}, 0.2, kFloat64), var = full({3}, 1.5, kFloat64);
        return Tensors{batch_norm_relu(in[0], in[3], in[1], in[2], mean, var, training, 0.1, 1e-3)};
      };
      const auto without = [training](const Tensors& in) {
        const Tensor mean = full({3}, 0.2, kFloat64), var = full({3}, 1.5, kFloat64);
        return Tensors{batch_norm_relu(in[0], {}, in[1], in[2], mean, var, training, 0.1, 1e-3)};
      };
      check_gradients(with, {x, w, b, residual});
      check_gradients(without, {x, w, b});
    }
  }
  // Only the residual's gradient, and no parameters.
  const auto plain = [x = image.detach()](const Tensors& in) {
    return Tensors{batch_norm_relu(x, in[0], {}, {}, {}, {}, true, 0.1, 1e-3)};
  };
  check_gradients(plain, {leaf({2, 3, 2, 2}, 5)});
}

TEST_CASE("batch_norm_relu: gradients lie as the input does") {
  const Tensor x = leaf({2, 3, 4, 5}).detach().contiguous(MemoryFormat::ChannelsLast).requires_grad_();
  const Tensor residual = leaf({2, 3, 4, 5}, 5);
  batch_norm_relu(x, residual, {}, {}, {}, {}, true, 0.1, 1e-3).sum().backward();
  CHECK(x.grad().strides() == x.strides());
}

TEST_CASE("batch_norm_relu: NaN goes through, as relu lets it") {
  const Tensor x = leaf({4, 1}).detach(), nan = full({4, 1}, std::nan(""), kFloat64);
  const Tensor out = batch_norm_relu(x, nan, {}, {}, {}, {}, true, 0.1, 1e-3);
  for (const double value : values(out)) CHECK(std::isnan(value));
}

TEST_CASE("batch_norm_relu: inputs without elements or values") {
  CHECK(batch_norm_relu(zeros({0, 3, 4}), {}, {}, {}, {}, {}, true, 0.1, 1e-5).sizes() == IntArrayRef({0, 3, 4}));
  const Tensor meta = empty({2, 3, 4}, kMeta);
  CHECK(batch_norm_relu(meta, meta, {}, {}, {}, {}, true, 0.1, 1e-5).sizes() == IntArrayRef({2, 3, 4}));
}

TEST_CASE("batch_norm_relu: wrong arguments change nothing") {
  const Tensor x = ones({2, 3, 4}), mean = zeros({3});
  CHECK_THROWS_AS(batch_norm_relu(x, zeros({2, 3}), {}, {}, mean, {}, true, 0.1, 1e-5), ValueError);
  CHECK_THROWS_AS(batch_norm_relu(x, zeros({2, 3, 4}, kFloat64), {}, {}, mean, {}, true, 0.1, 1e-5), TypeError);
  CHECK_THROWS_AS(batch_norm_relu(x, empty({2, 3, 4}, kMeta), {}, {}, mean, {}, true, 0.1, 1e-5), ValueError);
  CHECK_THROWS_AS(batch_norm_relu(x, {}, zeros({4}), {}, mean, {}, true, 0.1, 1e-5), ValueError);
  CHECK_THROWS_AS(batch_norm_relu(x, {}, {}, {}, mean, {}, false, 0.1, 1e-5), ValueError);
  CHECK_THROWS_AS(batch_norm_relu(x, zeros({2, 3}), {}, {}, mean, ones({3}), false, 0.1, 1e-5), ValueError);
  CHECK(values(mean) == Doubles{0, 0, 0});
  const Tensor three = zeros({3}), g = zeros({2, 3});
  CHECK_THROWS_AS(
      ops::native_batch_norm_relu_backward(g, x, x, false, {}, {}, three, three, {true, true, true, true}, {}),
      ValueError);
  CHECK_THROWS_AS(
      ops::native_batch_norm_relu_backward(x, g, x, false, {}, {}, three, three, {true, true, true, true}, {}),
      ValueError);
  CHECK_THROWS_AS(
      ops::native_batch_norm_relu_backward(x, x, x, true, {}, {}, three, three, {true, true, true, true}, g),
      ValueError);
  CHECK_THROWS_AS(
      ops::native_batch_norm_relu_backward(x, x, x, false, {}, {}, three, three, {true, true, true, true}, x),
      ValueError);
}

TEST_CASE("batch_norm_relu: the residual's gradient may be written over the output") {
  for (const DimVector& shape : {DimVector{33, 20}, DimVector{2, 3, 5, 4}}) {
    const Tensor x = rand(shape) - 0.5, residual = rand(shape) - 0.5, grad = rand(shape);
    const Tensor weight = rand({shape[1]}), bias = rand({shape[1]});
    const auto forward = ops::native_batch_norm_relu(x, residual, weight, bias, {}, {}, 0.1, 1e-5);
    const Tensor output = std::get<0>(forward), mean = std::get<1>(forward), invstd = std::get<2>(forward);
    const auto backward = [&](const OptionalTensor& grad_residual) {
      return ops::native_batch_norm_relu_backward(grad, output, x, true, weight, bias, mean, invstd,
                                                  {true, true, true, true}, grad_residual);
    };
    const auto [dx, gated, dw, db] = backward({});
    const auto [dx_again, in_place, dw_again, db_again] = backward(output);
    CHECK(in_place.data_ptr() == output.data_ptr());
    CHECK(in_place.equal(gated));
    CHECK(dx_again.equal(dx));
    CHECK(dw_again.equal(dw));
    CHECK(db_again.equal(db));
  }
}

TEST_CASE("batch_norm: wrong arguments") {
  const Tensor x = zeros({2, 3, 4}), three = zeros({3});
  CHECK_THROWS_AS(batch_norm(zeros({3}), {}, {}, {}, {}, true, 0.1, 1e-5), ValueError);
  CHECK_THROWS_AS(batch_norm(x, zeros({4}), {}, {}, {}, true, 0.1, 1e-5), ValueError);
  CHECK_THROWS_AS(batch_norm(x, {}, {}, {}, {}, false, 0.1, 1e-5), ValueError);
  CHECK_THROWS_AS(batch_norm(x, {}, {}, three, {}, false, 0.1, 1e-5), ValueError);
  CHECK_THROWS_AS(batch_norm(x, {}, {}, three, zeros({2}), true, 0.1, 1e-5), ValueError);
  CHECK(values(three) == Doubles{0, 0, 0});
  CHECK_THROWS_AS(batch_norm(x.to(kInt64), {}, {}, {}, {}, true, 0.1, 1e-5), NotImplementedError);
  CHECK_THROWS_AS(instance_norm(x, {}, {}, {}, {}, false, 0.1, 1e-5), ValueError);
  CHECK_THROWS_AS(instance_norm(x, zeros({4}), {}, {}, {}, true, 0.1, 1e-5), ValueError);
}

}  // namespace
