#include "core/ops/nn/im2col.h"

#include <doctest/doctest.h>

#include "rushlight.h"
#include "tests/ops/index/index_testing.h"

namespace {

using namespace rush;
using namespace rush::testing;

struct WindowCase {
  int64_t kernel[2], dilation[2], padding[2], stride[2];
};
constexpr WindowCase kWindowCases[] = {
    {{2, 2}, {1, 1}, {0, 0}, {1, 1}}, {{2, 3}, {1, 2}, {1, 2}, {2, 2}}, {{3, 1}, {2, 1}, {2, 0}, {1, 3}},
    {{1, 4}, {1, 1}, {0, 3}, {1, 1}}, {{2, 2}, {3, 4}, {3, 4}, {2, 1}},
};

int64_t count(const WindowCase& c, int d, int64_t size) {
  return (size + 2 * c.padding[d] - c.dilation[d] * (c.kernel[d] - 1) - 1) / c.stride[d] + 1;
}

TEST_CASE("im2col equals a plain loop, and col2im is its transpose") {
  constexpr int64_t kHeight = 5, kWidth = 6, kChannels = 2;
  const Tensor images = counting({3, kChannels, kHeight, kWidth}) + 1;
  for (const WindowCase& c : kWindowCases) {
    CAPTURE(c.kernel[1]);
    const int64_t rows = count(c, 0, kHeight), windows = rows * count(c, 1, kWidth);
    const Tensor columns = im2col(images, c.kernel, c.dilation, c.padding, c.stride);
    REQUIRE(columns.sizes() == IntArrayRef({3, kChannels * c.kernel[0] * c.kernel[1], windows}));
    const Tensor summed = zeros_like(images);
    bool right = true;
    int64_t at = 0;
    for (int64_t plane = 0; plane < 3 * kChannels; ++plane) {
      for (int64_t tap = 0; tap < c.kernel[0] * c.kernel[1]; ++tap) {
        for (int64_t l = 0; l < windows; ++l, ++at) {
          const int64_t y = l / (windows / rows) * c.stride[0] + tap / c.kernel[1] * c.dilation[0] - c.padding[0];
          const int64_t x = l % (windows / rows) * c.stride[1] + tap % c.kernel[1] * c.dilation[1] - c.padding[1];
          const bool inside = y >= 0 && y < kHeight && x >= 0 && x < kWidth;
          const int64_t pixel = (plane * kHeight + y) * kWidth + x;
          right = right && columns.data_ptr<double>()[at] == (inside ? images.data_ptr<double>()[pixel] : 0);
          if (inside) summed.data_ptr<double>()[pixel] += columns.data_ptr<double>()[at];
        }
      }
    }
    CHECK(right);
    const int64_t size[] = {kHeight, kWidth};
    CHECK(values(col2im(columns, size, c.kernel, c.dilation, c.padding, c.stride)) == values(summed));
    CHECK(
        values(col2im(columns.to(kBFloat16), size, c.kernel, c.dilation, c.padding, c.stride)) ==
        values(
            col2im(columns.to(kBFloat16).to(kFloat32), size, c.kernel, c.dilation, c.padding, c.stride).to(kBFloat16)));
    check_gradients([&](const Tensors& x) { return Tensors{im2col(x[0], c.kernel, c.dilation, c.padding, c.stride)}; },
                    {leaf({1, 4, 5})});
    check_gradients(
        [&](const Tensors& x) { return Tensors{col2im(x[0], size, c.kernel, c.dilation, c.padding, c.stride)}; },
        {leaf({c.kernel[0] * c.kernel[1], windows})});
  }
}

TEST_CASE("im2col: strided, empty, meta and bad input") {
  const Tensor image = counting({1, 3, 4});
  CHECK(values(im2col(image.transpose(1, 2), {2, 2}, {1, 1}, {0, 0}, {2, 2})) ==
        values(im2col(image.transpose(1, 2).contiguous(), {2, 2}, {1, 1}, {0, 0}, {2, 2})));
  CHECK(im2col(zeros({0, 1, 5, 5}), {2, 2}, {1, 2}, {0, 0}, {1, 2}).sizes() == IntArrayRef({0, 4, 8}));
  CHECK(im2col(empty({2, 3, 5, 5}, kMeta), {2, 2}, {1, 1}, {0, 0}, {2, 2}).sizes() == IntArrayRef({2, 12, 4}));
  CHECK(im2col(image.to(kBool), {1, 1}, {1, 1}, {0, 0}, {1, 1}).scalar_type() == kBool);
  CHECK_THROWS_AS(im2col(image, {4, 1}, {1, 1}, {0, 0}, {1, 1}), ValueError);
  CHECK_THROWS_AS(im2col(image, {0, 1}, {1, 1}, {0, 0}, {1, 1}), ValueError);
  CHECK_THROWS_AS(im2col(image, {1, 1}, {1, 1}, {0, 0}, {0, 1}), ValueError);
  CHECK_THROWS_AS(im2col(image.select(0, 0), {1, 1}, {1, 1}, {0, 0}, {1, 1}), ValueError);
  CHECK_THROWS_AS(col2im(zeros({4, 5}), {3, 3}, {2, 2}, {1, 1}, {0, 0}, {1, 1}), ValueError);
  CHECK_THROWS_AS(col2im(zeros({5, 4}), {3, 3}, {2, 2}, {1, 1}, {0, 0}, {1, 1}), ValueError);
  constexpr int64_t huge = int64_t{1} << 32;  // more windows than 64 bits count
  CHECK_THROWS_AS(col2im(zeros({4, 2}), {huge, 1}, {2, 1}, {1, 1}, {huge, huge}, {1, 1}), ValueError);
}

}  // namespace
