#include "core/ops/view/rearrange.h"

#include <doctest/doctest.h>

#include "rushlight.h"
#include "tests/ops/index/index_testing.h"

namespace {

using namespace rush;
using namespace rush::testing;

TEST_CASE("flip, roll and rot90") {
  const Tensor x = counting({2, 3});
  CHECK(values(x.flip({1})) == Doubles{2, 1, 0, 5, 4, 3});
  CHECK(values(x.flip({0, -1})) == Doubles{5, 4, 3, 2, 1, 0});
  CHECK(values(x.t().flip({0})) == Doubles{2, 5, 1, 4, 0, 3});
  CHECK(values(x.flip({})) == values(x));
  CHECK(values(fliplr(x)) == values(x.flip({1})));
  CHECK(values(flipud(x)) == values(x.flip({0})));
  CHECK(values(counting({}).flip({0})) == Doubles{0});
  CHECK(zeros({0, 3}).flip({0}).sizes() == IntArrayRef({0, 3}));
  CHECK(values(x.roll({1})) == Doubles{5, 0, 1, 2, 3, 4});
  CHECK(values(x.t().roll({-1})) == Doubles{3, 1, 4, 2, 5, 0});
  CHECK(values(x.roll({-4}, {1})) == Doubles{1, 2, 0, 4, 5, 3});
  CHECK(values(x.roll({1, 1}, {0, 1})) == Doubles{5, 3, 4, 2, 0, 1});
  CHECK(zeros({0, 3}).roll({1}, {0}).sizes() == IntArrayRef({0, 3}));
  CHECK(values(x.rot90()) == Doubles{2, 5, 1, 4, 0, 3});
  CHECK(values(x.rot90(2)) == Doubles{5, 4, 3, 2, 1, 0});
  CHECK(values(x.rot90(-1)) == Doubles{3, 0, 4, 1, 5, 2});
  CHECK(values(x.rot90(1, {1, 0})) == values(x.rot90(3)));
  CHECK_FALSE(x.rot90(4).is_alias_of(x));
  const Tensor large = counting({100, 7, 90});
  CHECK(values(large.flip({0, 2}).flip({2, 0})) == values(large));
  CHECK(large.flip({1})[99][0][3].item<double>() == large[99][6][3].item<double>());
  CHECK(empty({2, 3}, kMeta).rot90().sizes() == IntArrayRef({3, 2}));
}

TEST_CASE("flip keeps the layout of a dense tensor, of elements of every size") {
  for (const ScalarType dtype : {kUInt8, kFloat16, kFloat32, kInt64, kComplex128}) {
    const Tensor x = counting({3, 5, 7, 67}).remainder(251).to(dtype);
    const Tensor layouts[] = {x.permute({2, 0, 3, 1}).contiguous().permute({1, 3, 0, 2}), x.transpose(1, 3),
                              x.contiguous(MemoryFormat::ChannelsLast), x.slice(3, 0, 67, 2), x.narrow(1, 0, 1)};
    for (const Tensor& layout : layouts) {
      for (const auto& dims : std::vector<std::vector<int64_t>>{{3}, {1}, {0, 3}, {1, 2}, {0, 1, 2, 3}}) {
        const Tensor flipped = layout.flip(dims);
        CHECK(equal(flipped, layout.contiguous().flip(dims)));
        if (layout.is_non_overlapping_and_dense()) CHECK(flipped.strides() == layout.strides());
        for (const int64_t d : dims) CHECK(equal(flipped.select(d, 0), layout.flip(dims).flip({d}).select(d, -1)));
      }
    }
  }
  CHECK(values(counting({2}).expand({3, 2}).flip({1})) == Doubles{1, 0, 1, 0, 1, 0});
}

TEST_CASE("channels and pixels") {
  const Tensor x = counting({1, 8, 2, 3});
  const Tensor y = pixel_shuffle(x, 2);
  REQUIRE(y.sizes() == IntArrayRef({1, 2, 4, 6}));
  for (int64_t c = 0; c < 2; ++c) {
    for (int64_t i = 0; i < 4; ++i) {
      for (int64_t j = 0; j < 6; ++j) {
        const int64_t channel = c * 4 + i % 2 * 2 + j % 2;
        CHECK(y[0][c][i][j].item<double>() == x[0][channel][i / 2][j / 2].item<double>());
      }
    }
  }
  CHECK(values(pixel_unshuffle(y, 2)) == values(x));
  CHECK(values(channel_shuffle(counting({1, 6, 1}), 2)) == Doubles{0, 3, 1, 4, 2, 5});
  CHECK(pixel_shuffle(zeros({1, 0, 1, 1}), 1).sizes() == IntArrayRef({1, 0, 1, 1}));
  CHECK(!pixel_shuffle(x, 1).is_alias_of(x));
  CHECK(!pixel_unshuffle(x, 1).is_alias_of(x));
}

TEST_CASE("rearranging: what does not fit is a typed error") {
  const Tensor x = counting({2, 3});
  CHECK_THROWS_AS(x.flip({0, 0}), ValueError);
  CHECK_THROWS_AS(x.flip({2}), IndexError);
  CHECK_THROWS_AS(fliplr(counting({3})), ValueError);
  CHECK_THROWS_AS(flipud(counting({})), ValueError);
  CHECK_THROWS_AS(x.roll({}), ValueError);
  CHECK_THROWS_AS(x.clone().requires_grad_().roll({1, 2, 3}, {0}), ValueError);
  CHECK_THROWS_AS(x.roll({1, 2}), ValueError);
  CHECK_THROWS_AS(x.roll({1, 2}, {0}), ValueError);
  CHECK_THROWS_AS(x.roll({1}, {2}), IndexError);
  CHECK_THROWS_AS(x.rot90(1, {0}), ValueError);
  CHECK_THROWS_AS(x.rot90(1, {0, 0}), ValueError);
  CHECK_THROWS_AS(pixel_shuffle(counting({1, 3, 2, 2}), 2), ValueError);
  CHECK_THROWS_AS(pixel_shuffle(counting({1, 4, 2, 2}), 0), ValueError);
  CHECK_THROWS_AS(pixel_unshuffle(counting({1, 3, 3, 2}), 2), ValueError);
  CHECK_THROWS_AS(channel_shuffle(counting({1, 3, 2}), 2), ValueError);
}

TEST_CASE("derivatives of rearrangements") {
  const auto squared = [](const Tensor& y) { return Tensors{y * y}; };
  check_gradients([&](const Tensors& x) { return squared(x[0].flip({0, 2})); }, {leaf({2, 1, 3})});
  check_gradients([&](const Tensors& x) { return squared(x[0].t().roll({1, -2}, {0, 1})); }, {leaf({2, 3})});
  check_gradients([&](const Tensors& x) { return squared(x[0].roll({2})); }, {leaf({2, 3})});
  check_gradients([&](const Tensors& x) { return squared(x[0].rot90()); }, {leaf({2, 3})});
  check_gradients([&](const Tensors& x) { return squared(pixel_shuffle(x[0], 2)); }, {leaf({4, 1, 2})});
  check_gradients([&](const Tensors& x) { return squared(pixel_unshuffle(x[0], 2)); }, {leaf({1, 2, 4})});
  check_gradients([&](const Tensors& x) { return squared(channel_shuffle(x[0], 2)); }, {leaf({1, 4, 2})});
}

}  // namespace
