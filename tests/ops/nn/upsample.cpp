#include "core/ops/nn/upsample.h"

#include <doctest/doctest.h>

#include <cmath>

#include "rushlight.h"
#include "tests/ops/index/index_testing.h"

namespace {

using namespace rush;
using namespace rush::testing;

using Scales = std::vector<double>;

void check_within(const Doubles& got, const Doubles& expected, double tolerance = 1e-6) {
  REQUIRE(got.size() == expected.size());
  for (size_t i = 0; i < got.size(); ++i) CHECK(std::abs(got[i] - expected[i]) <= tolerance);
}

TEST_CASE("upsample_nearest: which element each output is") {
  const Tensor x = counting({1, 1, 4});
  CHECK(values(upsample_nearest1d(x, {8})) == Doubles{0, 0, 1, 1, 2, 2, 3, 3});
  CHECK(values(upsample_nearest1d(x, {3})) == Doubles{0, 1, 2});
  CHECK(values(_upsample_nearest_exact1d(x, {3})) == Doubles{0, 2, 3});
  CHECK(values(upsample_nearest1d(x, {6})) == Doubles{0, 0, 1, 2, 2, 3});
  CHECK(values(_upsample_nearest_exact1d(x, {6})) == Doubles{0, 1, 1, 2, 3, 3});
  // A scale factor decides the size and the steps: 4 * 1.7 rounds to 6, at steps of 1 / 1.7.
  CHECK(values(upsample_nearest1d(x, std::nullopt, Scales{1.7})) == Doubles{0, 0, 1, 1, 2, 2});
  // In two dimensions PyTorch takes no heed of it where the size stays or doubles, but in the exact mode.
  CHECK(values(upsample_nearest1d(x, std::nullopt, Scales{1.24})) == Doubles{0, 0, 1, 2});
  CHECK(values(upsample_nearest1d(x, std::nullopt, Scales{2.2})) == Doubles{0, 0, 0, 1, 1, 2, 2, 3});
  const Tensor row = x.unsqueeze(2);
  CHECK(values(upsample_nearest2d(row, std::nullopt, Scales{1.0, 1.24})) == Doubles{0, 1, 2, 3});
  CHECK(values(upsample_nearest2d(row, std::nullopt, Scales{1.0, 2.2})) == Doubles{0, 0, 1, 1, 2, 2, 3, 3});
  CHECK(values(_upsample_nearest_exact2d(row, std::nullopt, Scales{1.0, 1.24})) == Doubles{0, 1, 2, 2});
  const Tensor plane = counting({1, 2, 2, 2});
  const Doubles expected{0, 0, 1, 0, 0, 1, 2, 2, 3, 4, 4, 5, 4, 4, 5, 6, 6, 7};
  for (const ScalarType dtype : {kFloat64, kFloat32, kBFloat16, kUInt8}) {
    CHECK(values(upsample_nearest2d(plane.to(dtype), {3, 3})) == expected);
    CHECK(values(upsample_nearest2d(plane.to(dtype).contiguous(MemoryFormat::ChannelsLast), {3, 3})) == expected);
  }
  CHECK(values(upsample_nearest3d(plane.view({1, 1, 2, 2, 2}), {1, 1, 2})) == Doubles{0, 1});
}

// PyTorch 2.11's numbers.
TEST_CASE("upsample: linear and cubic values") {
  const Tensor x = tensor({1., 3., -2., 5.}).view({1, 1, 4});
  check_within(values(upsample_linear1d(x, {6}, false)),
               {1, 2, 2.1666666666666665, -1.1666666666666663, 1.4999999999999996, 5});
  check_within(values(upsample_linear1d(x, {6}, true)), {1, 2.2, 2, -1, 0.8, 5});
  check_within(values(upsample_linear1d(x, {2}, false)), {2, 1.5});
  check_within(values(upsample_linear1d(x, std::nullopt, false, Scales{0.5})), {2, 1.5});
  const Tensor plane = tensor({1., 3., -2., 5., 0., 4.}).view({1, 1, 2, 3});
  check_within(values(upsample_bilinear2d(plane, {3, 2}, false)), {1.5, -0.75, 2.625, 1.125, 3.75, 3});
  check_within(values(upsample_bilinear2d(plane, {3, 2}, true)), {1, -2, 3, 1, 5, 4});
  check_within(values(upsample_bicubic2d(plane, {2, 4}, false)),
               {0.8564453125, 2.82861328125, 1.41796875, -2.35888671875, 5.35888671875, 1.3623046875, 0.89208984375,
                4.287109375},
               1e-12);
}

// A dimension by the definition: each output the mean of all inputs, weighted by the filter around its centre, which is
// as many times wider as the output is smaller.
Doubles antialiased(const Doubles& in, int64_t outputs, bool cubic) {
  const double ratio = static_cast<double>(in.size()) / static_cast<double>(outputs), wide = std::max(ratio, 1.0);
  const auto filter = [&](double x) {
    x = std::abs(x);
    if (!cubic) return std::max(0.0, 1 - x);
    if (x < 1) return 1.5 * x * x * x - 2.5 * x * x + 1;
    return x < 2 ? -0.5 * x * x * x + 2.5 * x * x - 4 * x + 2 : 0;
  };
  Doubles out;
  for (int64_t o = 0; o < outputs; ++o) {
    double sum = 0, total = 0;
    for (size_t i = 0; i < in.size(); ++i) {
      const double w = filter((static_cast<double>(i) + 0.5 - ratio * (static_cast<double>(o) + 0.5)) / wide);
      sum += w * in[i];
      total += w;
    }
    out.push_back(sum / total);
  }
  return out;
}

TEST_CASE("upsample: antialiased filters see all that they cover") {
  const Tensor x = leaf({1, 1, 1, 11}).detach();
  for (const int64_t outputs : {1, 2, 3, 5, 7, 11, 16}) {
    CAPTURE(outputs);
    check_within(values(_upsample_bilinear2d_aa(x, {1, outputs}, false)), antialiased(values(x), outputs, false),
                 1e-12);
    check_within(values(_upsample_bicubic2d_aa(x, {1, outputs}, false)), antialiased(values(x), outputs, true), 1e-12);
    check_within(values(_upsample_bicubic2d_aa(x.transpose(2, 3), {outputs, 1}, false)),
                 antialiased(values(x), outputs, true), 1e-12);
  }
  const Tensor image = leaf({2, 3, 9, 7}).detach();
  for (const auto& resize : {_upsample_bilinear2d_aa, _upsample_bicubic2d_aa}) {
    const Tensor small = resize(image, IntArrayRef({4, 5}), false, std::nullopt);
    const Tensor last = resize(image.contiguous(MemoryFormat::ChannelsLast), IntArrayRef({4, 5}), false, std::nullopt);
    CHECK(last.is_contiguous(MemoryFormat::ChannelsLast));
    check_within(values(last), values(small), 1e-12);
    check_within(values(resize(image.to(kFloat32), IntArrayRef({4, 5}), false, std::nullopt)), values(small), 1e-5);
    check_within(values(resize(full({1, 1, 8, 8}, 2.5, kBFloat16), IntArrayRef({3, 3}), false, std::nullopt)),
                 Doubles(9, 2.5), 0.02);
  }
  // A dimension whose size stays is left alone, whatever its factor.
  const Tensor few = leaf({1, 1, 3, 4}).detach();
  for (const bool align : {false, true}) {
    check_within(values(upsample_bilinear2d(few, std::nullopt, align, Scales{1.3, 1.2})), values(few), 1e-12);
    check_within(values(_upsample_bilinear2d_aa(few, std::nullopt, align, Scales{1.0, 1.2})), values(few), 1e-12);
  }
  // PyTorch 2.11's numbers.
  const Tensor bytes = (arange(0, 36) * 7 % 256).to(kUInt8).view({1, 1, 6, 6});
  CHECK(values(_upsample_bilinear2d_aa(bytes, {3, 2}, false)) == Doubles{39, 56, 114, 131, 189, 206});
  CHECK(values(_upsample_bicubic2d_aa(bytes, {2, 3}, false)) == Doubles{52, 66, 79, 166, 180, 193});
  CHECK_THROWS_AS(_upsample_bilinear2d_aa(x[0], {1, 2}, false), ValueError);
}

TEST_CASE("upsample: weights sum to one, and rows and columns are resized alike") {
  const Tensor flat = full({2, 3, 4, 5}, 2.5, kFloat64);
  const auto all = [](const Tensor& t, double value) {
    return values(t) == Doubles(static_cast<size_t>(t.numel()), value);
  };
  CHECK(all(upsample_bilinear2d(flat, {7, 3}, false), 2.5));
  check_within(values(upsample_bicubic2d(flat, {7, 3}, false)), Doubles(2 * 3 * 21, 2.5), 1e-12);
  check_within(values(upsample_trilinear3d(flat.view({1, 2, 3, 4, 5}), {2, 6, 7}, false)), Doubles(2 * 84, 2.5), 1e-12);
  const Tensor x = leaf({2, 3, 5, 4}).detach();
  check_within(values(upsample_bilinear2d(x, {7, 3}, false)),
               values(upsample_bilinear2d(x.transpose(2, 3), {3, 7}, false).transpose(2, 3)), 1e-12);
  check_within(values(upsample_bicubic2d(x.contiguous(MemoryFormat::ChannelsLast), {7, 6}, true)),
               values(upsample_bicubic2d(x, {7, 6}, true)), 1e-12);
  CHECK(upsample_bilinear2d(x.contiguous(MemoryFormat::ChannelsLast), {7, 6}, true)
            .is_contiguous(MemoryFormat::ChannelsLast));
  check_within(values(upsample_trilinear3d(x.view({1, 2, 3, 5, 4}), {3, 7, 3}, false)),
               values(upsample_bilinear2d(x.reshape({2, 3, 5, 4}), {7, 3}, false)), 1e-12);
  check_within(values(upsample_bilinear2d(x.to(kBFloat16), {7, 3}, false)),
               values(upsample_bilinear2d(x, {7, 3}, false)), 0.02);
}

TEST_CASE("upsample: images of bytes are resized in integers") {
  const Tensor image = tensor({0, 255, 100, 7}).to(kUInt8).view({1, 1, 2, 2});
  CHECK(values(upsample_bilinear2d(image, {3, 3}, false)) == Doubles{0, 128, 255, 50, 91, 131, 100, 54, 7});
  CHECK(values(upsample_bicubic2d(image, {3, 3}, false)) == Doubles{0, 134, 255, 54, 91, 128, 117, 48, 0});
  // Rows longer than a chunk of sums, in both layouts, against the same in floating point: each dimension rounds once.
  const Tensor wide = leaf({2, 3, 9, 300}).detach().mul(1e4).remainder(256).floor();
  for (const int64_t columns : {171, 420}) {
    const Tensor got = upsample_bilinear2d(wide.to(kUInt8), {7, columns}, false);
    CHECK(got.scalar_type() == kUInt8);
    CHECK(largest(got.to(kFloat64) - upsample_bilinear2d(wide, {7, columns}, false)) < 1.02);
    CHECK(equal(got, upsample_bilinear2d(wide.to(kUInt8).contiguous(MemoryFormat::ChannelsLast), {7, columns}, false)));
  }
  CHECK_THROWS_AS(upsample_trilinear3d(image.view({1, 1, 1, 2, 2}), {1, 3, 3}, false), NotImplementedError);
}

TEST_CASE("upsample: first and second derivatives") {
  const Tensor line = leaf({2, 2, 4});
  check_gradients([](const Tensors& in) { return Tensors{upsample_nearest1d(in[0], {7})}; }, {line});
  check_gradients([](const Tensors& in) { return Tensors{_upsample_nearest_exact1d(in[0], {3})}; }, {line});
  check_gradients([](const Tensors& in) { return Tensors{upsample_linear1d(in[0], {6}, true)}; }, {line});
  const Tensor plane = leaf({1, 2, 3, 4});
  const Tensor last = leaf({1, 2, 3, 4}).detach().contiguous(MemoryFormat::ChannelsLast).requires_grad_();
  for (const Tensor& x : {plane, last}) {
    check_gradients([](const Tensors& in) { return Tensors{upsample_nearest2d(in[0], {4, 2})}; }, {x});
    check_gradients([](const Tensors& in) { return Tensors{_upsample_nearest_exact2d(in[0], {2, 5})}; }, {x});
    check_gradients([](const Tensors& in) { return Tensors{upsample_bilinear2d(in[0], {5, 3}, false)}; }, {x});
    check_gradients(
        [](const Tensors& in) {
          return Tensors{upsample_bicubic2d(in[0], std::nullopt, false, Scales{1.5, 0.8})};
        },
        {x});
    check_gradients([](const Tensors& in) { return Tensors{_upsample_bilinear2d_aa(in[0], {2, 5}, false)}; }, {x});
    check_gradients([](const Tensors& in) { return Tensors{_upsample_bicubic2d_aa(in[0], {2, 3}, true)}; }, {x});
  }
  const Tensor box = leaf({1, 1, 2, 3, 2});
  check_gradients([](const Tensors& in) { return Tensors{upsample_nearest3d(in[0], {3, 2, 3})}; }, {box});
  check_gradients([](const Tensors& in) { return Tensors{_upsample_nearest_exact3d(in[0], {3, 2, 3})}; }, {box});
  check_gradients([](const Tensors& in) { return Tensors{upsample_trilinear3d(in[0], {3, 2, 3}, false)}; }, {box});
}

// Channels-last planes are split into parts of 64 channels; others, and 16-bit numbers, are summed in one go.
TEST_CASE("upsample: gradients of many channels, in every layout and dtype") {
  const Tensor image = leaf({2, 70, 3, 5}).detach(), grad = leaf({2, 70, 7, 9}, 1).detach();
  using Resize = Tensor (*)(const Tensor&);
  for (const Resize resize : {Resize([](const Tensor& x) {
                                return upsample_nearest2d(x, {7, 9});
                              }),
                              Resize([](const Tensor& x) {
                                return upsample_bilinear2d(x, {7, 9}, false);
                              }),
                              Resize([](const Tensor& x) {
                                return upsample_bicubic2d(x, {7, 9}, true);
                              })}) {
    const Tensor x = image.clone().requires_grad_();
    const Tensor expected = autograd::grad({resize(x)}, {x}, {grad})[0];
    for (const ScalarType dtype : {kFloat64, kFloat32, kBFloat16}) {
      CAPTURE(dtype);
      for (const MemoryFormat format : {MemoryFormat::Contiguous, MemoryFormat::ChannelsLast}) {
        const Tensor other = image.to(dtype).contiguous(format).requires_grad_();
        const Tensor got = autograd::grad({resize(other)}, {other}, {grad.to(dtype).contiguous(format)})[0];
        CHECK(got.is_contiguous(format));
        const double tolerance = dtype == kFloat64 ? 1e-13 : dtype == kFloat32 ? 1e-5 : 0.1;
        CHECK(largest(got.to(kFloat64) - expected) < tolerance);
      }
    }
  }
}

TEST_CASE("upsample: a plane is resized as if it were alone") {
  using Resize = Tensor (*)(const Tensor&);
  const Resize resizes[] = {[](const Tensor& x) {
                              return upsample_nearest2d(x, {9, 5});
                            },
                            [](const Tensor& x) {
                              return upsample_bilinear2d(x, {9, 5}, false);
                            },
                            [](const Tensor& x) {
                              return upsample_bicubic2d(x, {9, 5}, true);
                            },
                            [](const Tensor& x) {
                              return _upsample_bilinear2d_aa(x, {9, 13}, false);
                            },
                            [](const Tensor& x) {
                              return _upsample_bicubic2d_aa(x, {9, 13}, false);
                            },
                            [](const Tensor& x) {
                              return _upsample_bicubic2d_aa(x, {9, 3}, false);
                            }};
  for (const int64_t planes : {1, 3, 4, 5, 9}) {
    CAPTURE(planes);
    const Tensor image = leaf({planes, 2, 6, 7}).detach();
    for (const Resize resize : resizes) {
      for (const MemoryFormat format : {MemoryFormat::Contiguous, MemoryFormat::ChannelsLast}) {
        const Tensor x = image.contiguous(format).requires_grad_(), y = resize(x);
        const Tensor grad = leaf(y.sizes(), 1).detach(), grad_x = autograd::grad({y}, {x}, {grad})[0];
        for (int64_t p = 0; p < planes; ++p) {
          const Tensor alone = image.narrow(0, p, 1).contiguous(format).requires_grad_(), its = resize(alone);
          check_within(values(y.narrow(0, p, 1)), values(its), 1e-13);
          const Tensor grad_alone = autograd::grad({its}, {alone}, {grad.narrow(0, p, 1)})[0];
          check_within(values(grad_x.narrow(0, p, 1)), values(grad_alone), 1e-13);
        }
      }
    }
  }
}

TEST_CASE("upsample: empty batches, meta tensors and wrong arguments") {
  CHECK(upsample_bilinear2d(zeros({0, 3, 4, 4}), {8, 8}, false).sizes() == IntArrayRef({0, 3, 8, 8}));
  CHECK(upsample_nearest2d(empty({2, 3, 4, 4}, kMeta), std::nullopt, Scales{2, 0.5}).sizes() ==
        IntArrayRef({2, 3, 8, 2}));
  // Nothing to compute, in however many places.
  CHECK(upsample_linear1d(zeros({5, 0, 1}), {int64_t{1} << 60}, true).numel() == 0);
  CHECK(ops::_upsample_bicubic2d_aa(zeros({0, 3, 3, 1}), {int64_t{1} << 60, 3}, false, {}, {}).numel() == 0);
  const Tensor x = zeros({1, 1, 4, 4});
  CHECK_THROWS_AS(upsample_nearest2d(x, {4}), ValueError);
  CHECK_THROWS_AS(upsample_nearest2d(x, {0, 4}), ValueError);
  CHECK_THROWS_AS(ops::upsample_nearest2d(x.to(kUInt8), {2, 2}, 1e-300, std::nullopt), ValueError);
  CHECK_THROWS_AS(ops::upsample_bilinear2d(x.to(kUInt8), {3, 3}, false, 1e-300, std::nullopt), ValueError);
  CHECK_THROWS_AS(upsample_nearest2d(x, std::nullopt), ValueError);
  CHECK_THROWS_AS(upsample_nearest2d(x, {2, 2}, Scales{2, 2}), ValueError);
  CHECK_THROWS_AS(upsample_nearest1d(x, {4}), ValueError);
  CHECK_THROWS_AS(upsample_bilinear2d(x.to(kInt64), {2, 2}, false), NotImplementedError);
  CHECK_THROWS_AS(ops::upsample_nearest2d_backward(x, {8, 8}, {1, 1, 4, 4}, std::nullopt, std::nullopt), ValueError);
}

}  // namespace
