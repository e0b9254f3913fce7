// Tensors in channels_last stay so through what convolutional nets are made of, forward and backward: a result in
// another layout would cost a copy at the next operator.
#include <doctest/doctest.h>

#include <functional>
#include <vector>

#include "rushlight.h"

namespace {

using namespace rush;
using Call = std::function<Tensor(const Tensor& x)>;

constexpr MemoryFormat kLast = MemoryFormat::ChannelsLast;

bool is_channels_last(const Tensor& t) { return t.suggest_memory_format() == kLast; }

Tensor image(ScalarType dtype, int64_t channels = 6) {
  return randn({2, channels, 8, 10}, dtype).contiguous(kLast).requires_grad_();
}

Tensor filters(int64_t out, int64_t in, int64_t size, ScalarType dtype) {
  return randn({out, in, size, size}, dtype).contiguous(kLast).requires_grad_();
}

// The output, and the gradient by the input.
void check_layout(const Call& call, const Tensor& x) {
  const Tensor y = call(x);
  CHECK(is_channels_last(y));
  CHECK(y.scalar_type() == x.scalar_type());
  y.backward(randn(y.sizes(), y.options()).contiguous(kLast));
  CHECK(x.grad().strides() == x.strides());
}

TEST_CASE("channels_last: operators keep it") {
  for (const ScalarType dtype : {kFloat32, kBFloat16}) {
    CAPTURE(dtype);
    const Tensor w = ones({6}), b = zeros({6}), mean = zeros({6}), var = ones({6});
    const Tensor other = randn({2, 6, 8, 10}, dtype).contiguous(kLast);
    const std::vector<std::pair<std::string, Call>> calls = {
        {"relu", [](const Tensor& x) { return relu(x); }},
        {"add", [&](const Tensor& x) { return x + other; }},
        {"multiplication by a number", [](const Tensor& x) { return x * 2; }},
        {"multiplication by a number for each channel",
         [](const Tensor& x) {
           return x * ones({6, 1, 1}, x.scalar_type());
         }},
        {"max_pool2d", [](const Tensor& x) { return max_pool2d(x, 3, 2, 1); }},
        {"avg_pool2d", [](const Tensor& x) { return avg_pool2d(x, 2); }},
        {"adaptive_avg_pool2d",
         [](const Tensor& x) {
           return adaptive_avg_pool2d(x, {2, 5});
         }},
        {"cat",
         [&](const Tensor& x) {
           return cat({x, other}, 1);
         }},
        {"batch_norm", [&](const Tensor& x) { return batch_norm(x, w, b, mean, var, true, 0.1, 1e-5); }},
        {"batch_norm, evaluated", [&](const Tensor& x) { return batch_norm(x, w, b, mean, var, false, 0.1, 1e-5); }},
        {"batch_norm_relu",
         [&](const Tensor& x) { return batch_norm_relu(x, other, w, b, mean, var, true, 0.1, 1e-5); }},
    };
    for (const auto& [name, call] : calls) {
      CAPTURE(name);
      check_layout(call, image(dtype));
    }
  }
}

TEST_CASE("channels_last: the gradient of pooling to one position and a linear layer") {
  const Tensor x = image(kFloat32), weight = randn({4, 6});
  linear(adaptive_avg_pool2d(x, 1).flatten(1), weight).sum().backward();
  CHECK(x.grad().strides() == x.strides());
}

TEST_CASE("channels_last: a gradient that a leaf has to copy lies as the leaf does") {
  const Tensor x = image(kFloat32), other = image(kFloat32);
  (x + other).sum().backward();  // expanded, and shared
  CHECK(x.grad().strides() == x.strides());
  CHECK(other.grad().strides() == other.strides());
}

TEST_CASE("channels_last: convolutions keep it, and so do the gradients by their weights") {
  for (const ScalarType dtype : {kFloat32, kBFloat16}) {
    CAPTURE(dtype);
    struct Geometry {
      int64_t in, out, size, stride;
    };
    for (const Geometry g : {Geometry{3, 8, 7, 2}, {6, 8, 3, 1}, {6, 8, 3, 2}, {6, 8, 1, 1}, {6, 8, 1, 2}}) {
      CAPTURE(g.size);
      CAPTURE(g.stride);
      const Tensor w = filters(g.out, g.in, g.size, dtype);
      check_layout([&](const Tensor& x) { return conv2d(x, w, {}, g.stride, g.size / 2); }, image(dtype, g.in));
      CHECK(w.grad().strides() == w.strides());
    }
  }
}

TEST_CASE("channels_last: autocast's casts and the optimiser's buffers keep it") {
  const Tensor x = randn({2, 6, 8, 10}).contiguous(kLast), w = filters(8, 6, 3, kFloat32);
  optim::SGD optimizer({w}, optim::SGDOptions(0.1).momentum(0.9).weight_decay(1e-4));
  for (int step = 0; step < 2; ++step) {
    const autocast::Autocast lower(x.device().type, kBFloat16);
    const Tensor y = conv2d(x, w);
    CHECK(y.scalar_type() == kBFloat16);
    CHECK(is_channels_last(y));
    optimizer.zero_grad();
    y.sum().backward();
    CHECK(w.grad().strides() == w.strides());
    optimizer.step();
    CHECK(is_channels_last(w));
  }
  const auto& state = static_cast<const optim::SGDParamState&>(*optimizer.state().at(w.impl()));
  CHECK(is_channels_last(state.momentum_buffer()));
}

}  // namespace
