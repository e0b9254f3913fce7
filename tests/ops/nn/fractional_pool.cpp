#include "core/ops/nn/fractional_pool.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "rushlight.h"
#include "tests/ops/index/index_testing.h"

namespace {

using namespace rush;
using namespace rush::testing;

int64_t window_start(double sample, int64_t in, int64_t out, int64_t kernel, int64_t i) {
  if (i == out - 1) return in - kernel;
  const double step = static_cast<double>(in - kernel) / static_cast<double>(out - 1);
  return static_cast<int64_t>((static_cast<double>(i) + sample) * step) - static_cast<int64_t>(sample * step);
}

TEST_CASE("fractional_max_pool2d: the largest of each window, and its place") {
  const Tensor x = leaf({2, 3, 7, 9}).detach(), u = leaf({2, 3, 2}).detach().abs() * 0.99;
  const Doubles in = values(x), samples = values(u);
  const int64_t H = 7, W = 9, OH = 4, OW = 3, KH = 2, KW = 4;
  Doubles largest, where;
  for (int64_t plane = 0; plane < 6; ++plane) {
    for (int64_t oh = 0; oh < OH; ++oh) {
      for (int64_t ow = 0; ow < OW; ++ow) {
        const int64_t h0 = window_start(samples[plane * 2 + 1], H, OH, KH, oh);
        const int64_t w0 = window_start(samples[plane * 2], W, OW, KW, ow);
        double best = -std::numeric_limits<double>::infinity(), at = -1;
        for (int64_t i = 0; i < KH * KW; ++i) {
          const int64_t place = (h0 + i / KW) * W + w0 + i % KW;
          const double value = in[plane * H * W + place];
          if (value > best) at = static_cast<double>(place);
          best = std::max(best, value);
        }
        largest.push_back(best);
        where.push_back(at);
      }
    }
  }
  for (const Tensor& input : {x, x.contiguous(MemoryFormat::ChannelsLast)}) {
    const auto [out, indices] = fractional_max_pool2d(input, {KH, KW}, {OH, OW}, u);
    CHECK(values(out) == largest);
    CHECK(values(indices) == where);
    CHECK(indices.scalar_type() == kInt64);
  }
  const auto [one, place] = fractional_max_pool2d(x[0], {KH, KW}, {OH, OW}, u.narrow(0, 0, 1));
  CHECK(values(one) == Doubles(largest.begin(), largest.begin() + 36));
  // Samples for a larger batch: the first ones are taken.
  CHECK(equal(std::get<0>(fractional_max_pool2d(x[0], {KH, KW}, {OH, OW}, u)), one));
  // A volume of one slice is an image; its samples come in the order of its dimensions.
  const Tensor turned = stack({zeros({2, 3}, kFloat64), u.select(2, 1), u.select(2, 0)}, 2);
  CHECK(values(std::get<0>(fractional_max_pool3d(x.unsqueeze(2), {1, KH, KW}, {1, OH, OW}, turned))) == largest);
}

// Where the windows of a row of each plane begin, (planes) -> (planes, out), as PyTorch rounds it in the dtype.
Tensor rounded_starts(const Tensor& sample, int64_t in, int64_t out, int64_t kernel) {
  const Tensor u = sample.unsqueeze(1);
  const double step = static_cast<double>(in - kernel) / static_cast<double>(out - 1);
  const Tensor starts = ((arange(0, out, u.options()) + u) * step).floor() - (u * step).floor();
  return starts.to(kInt64).index_fill(1, tensor({out - 1}), in - kernel);
}

TEST_CASE("fractional pooling: samples of every dtype, equal elements and NaN") {
  const int64_t planes = 40, in = 301, out = 120, kernel = 3;
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const ScalarType dtype : {kFloat64, kFloat32, kFloat16, kBFloat16}) {
    CAPTURE(dtype);
    Tensor x = leaf({1, planes, 1, in}).detach().mul(4).round().to(dtype);
    x[0][3].fill_(-std::numeric_limits<double>::infinity());
    x[0][4].index_fill_(1, tensor({20, 21, 100}), nan);
    const Tensor u = leaf({1, planes, 2}, 1).detach().abs().mul(0.99).to(dtype);
    const auto [largest, indices] = fractional_max_pool2d(x, {1, kernel}, {1, out}, u);
    const Tensor places = rounded_starts(u[0].select(1, 0), in, out, kernel).unsqueeze(2) + arange(0, kernel);
    const Doubles windows = values(x.view({planes, in}).gather(1, places.flatten(1)));
    Doubles expected;
    for (size_t w = 0; w < windows.size(); w += kernel) {
      size_t best = w;
      for (size_t i = w + 1; i < w + kernel; ++i) {
        if (std::isnan(windows[i]) || windows[i] > windows[best]) best = i;
      }
      expected.push_back(static_cast<double>(best));
    }
    CHECK(equal(indices.flatten(), places.flatten().index_select(0, tensor(expected).to(kInt64))));
    CHECK(
        allclose(largest.view({planes, out}), x.view({planes, in}).gather(1, indices.view({planes, out})), 0, 0, true));
  }
}

TEST_CASE("fractional pooling: first and second derivatives") {
  const Tensor u = leaf({1, 2, 2}).detach().abs(), v = leaf({1, 2, 3}).detach().abs();
  check_gradients(
      [&](const Tensors& in) {
        return Tensors{std::get<0>(fractional_max_pool2d(in[0], 2, {2, 3}, u))};
      },
      {leaf({1, 2, 4, 5})});
  check_gradients([&](const Tensors& in) { return Tensors{std::get<0>(fractional_max_pool3d(in[0], 2, 2, v))}; },
                  {leaf({2, 3, 4, 3})});
}

TEST_CASE("fractional pooling: empty batches, meta tensors and wrong arguments") {
  const Tensor x = zeros({1, 2, 5, 5}), u = zeros({1, 2, 2});
  const auto meta = [](IntArrayRef sizes) { return empty(sizes, kMeta); };
  CHECK(std::get<1>(fractional_max_pool2d(meta({3, 2, 5, 5}), 2, 3, meta({3, 2, 2}))).sizes() ==
        IntArrayRef({3, 2, 3, 3}));
  CHECK(std::get<0>(fractional_max_pool2d(zeros({0, 2, 5, 5}), 2, 3, zeros({0, 2, 2}))).sizes() ==
        IntArrayRef({0, 2, 3, 3}));
  CHECK_THROWS_AS(fractional_max_pool2d(zeros({1, 0, 5, 5}), 2, 3, zeros({1, 0, 2})), ValueError);
  CHECK_THROWS_AS(fractional_max_pool2d(zeros({5, 5}), 2, 3, u), ValueError);
  CHECK_THROWS_AS(fractional_max_pool2d(x, 2, 3, zeros({1, 2, 3})), ValueError);
  CHECK_THROWS_AS(fractional_max_pool2d(x, 2, 3, zeros({2, 2})), ValueError);
  CHECK_THROWS_AS(fractional_max_pool2d(x, 2, 5, u), ValueError);
  CHECK_THROWS_AS(fractional_max_pool2d(x, 0, 3, u), ValueError);
  CHECK_THROWS_AS(fractional_max_pool2d(x, 2, {3, 0}, u), ValueError);
  CHECK_THROWS_AS(fractional_max_pool2d(x, {2, 2, 2}, 3, u), ValueError);
  CHECK_THROWS_AS(fractional_max_pool2d(x, 2, 3, u.to(kFloat64)), TypeError);
  CHECK_THROWS_AS(fractional_max_pool2d(x.to(kInt64), 2, 3, u.to(kInt64)), TypeError);
  CHECK_THROWS_WITH_AS(fractional_max_pool2d(x, 4, 3, u),
                       "fractional_max_pool2d: 3 windows of 4 do not fit an input of size 5", ValueError);
}

}  // namespace
